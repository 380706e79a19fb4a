# SPDX-License-Identifier: Apache-2.0
"""Derivatives of derivatives, function transforms, linear algebra, complex numbers."""

import torch
import torch.nn.functional as F
from torch import func, nn

from .registry import ORDER, STEPS, THREADS, adamw, model, sgd, train

WIDTH = 8
ROUNDING = 2e-6


def smooth(*sizes):
    found = []
    for narrow, wide in zip(sizes, sizes[1:]):
        found += [nn.Linear(narrow, wide), nn.Tanh()]
    return nn.Sequential(*found[:-1])


def called(net):
    """The network as a function of its parameters, by name."""
    return lambda parameters, x: func.functional_call(net, parameters, (x,))


@model(race=THREADS)
def gradients_by_function(place):
    """No backward(): func.grad_and_value and an update by hand."""
    net = place.put(smooth(WIDTH, 16, WIDTH))
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    call = called(net)
    for _ in range(STEPS):
        x = place.normal(9, WIDTH)
        grads, loss = func.grad_and_value(lambda p: F.mse_loss(call(p, x), x))(parameters)
        parameters = {name: p - 0.1 * grads[name] for name, p in parameters.items()}
        place.record(loss)
        place.finish(*grads.values())
    place.finish(*parameters.values())


@model(race=THREADS)
def per_sample(place):
    """Differential privacy: each sample's gradient, clipped."""
    net = place.put(smooth(WIDTH, 16, 3))
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    call = called(net)

    def loss(p, x, label):
        return F.cross_entropy(call(p, x[None]), label[None])

    for _ in range(STEPS):
        x, label = place.normal(9, WIDTH), place.whole(3, 9)
        each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, x, label)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        factor = (1 / norms).clamp(max=1)
        for name, grad in each.items():
            parameters[name] = parameters[name] - torch.einsum(
                "b...,b->...", grad, factor
            )
        place.record(norms.mean())
    place.finish(*parameters.values())


@model
def ensemble(place):
    nets = place.put(*(smooth(WIDTH, 16, 3) for _ in range(3)))
    parameters, buffers = func.stack_module_state(nets)
    base = nets[0]

    def run(p, b, x):
        return func.functional_call(base, (p, b), (x,))

    optimizer = sgd(parameters.values())
    for _ in range(STEPS):
        optimizer.zero_grad()
        y = func.vmap(run, in_dims=(0, 0, None))(
            parameters, buffers, place.normal(9, WIDTH)
        )
        loss = F.cross_entropy(y.flatten(0, 1), place.whole(3, 27))
        loss.backward()
        place.record(loss, *parameters.values())
        optimizer.step()
    place.finish(*parameters.values())


@model(bound=ROUNDING, why=ORDER, race=THREADS)
def jacobians(place):
    net = smooth(WIDTH, 16, WIDTH)

    def loss(step):
        x = place.normal(WIDTH)
        one, two = func.jacrev(net)(x), func.jacfwd(net)(x)
        along = func.jvp(net, (x,), (x,))[1] + func.vjp(net, x)[1](x)[0]
        return one.square().sum() + two.diagonal().sum() + along.mean()

    train(place, net, loss)


@model(race=THREADS)
def hessians(place):
    net = smooth(WIDTH, 16, 1)

    def loss(step):
        x = place.normal(4, WIDTH)
        curves = func.vmap(func.hessian(lambda row: net(row)[0]))(x)
        return curves.square().mean() + torch.vmap(torch.trace)(curves).mean()

    train(place, net, loss)


@model
def forward_mode(place):
    net = smooth(WIDTH, 16, WIDTH)

    def loss(step):
        x, along = place.normal(4, WIDTH), place.normal(4, WIDTH)
        with torch.autograd.forward_ad.dual_level():
            dual = net(torch.autograd.forward_ad.make_dual(x, along))
            y, slope = torch.autograd.forward_ad.unpack_dual(dual)
        return y.square().mean() + slope.square().mean()

    train(place, net, loss)


@model(bound=ROUNDING, why=ORDER, race=THREADS)
def meta_learning(place):
    """An inner step whose gradient is differentiated through."""
    net = smooth(WIDTH, 16, WIDTH)

    def loss(step):
        names = dict(net.named_parameters())
        total = 0
        for _ in range(2):
            x = place.normal(5, WIDTH)
            inner = F.mse_loss(func.functional_call(net, names, (x,)), x)
            grads = torch.autograd.grad(inner, list(names.values()), create_graph=True)
            moved = {n: p - 0.1 * g for (n, p), g in zip(names.items(), grads)}
            x = place.normal(5, WIDTH)
            total = total + F.mse_loss(func.functional_call(net, moved, (x,)), x)
        return total

    train(place, net, loss, adamw)


@model(bound=ROUNDING, why=ORDER, race=THREADS)
def physics(place):
    """A differential equation in the loss: second derivatives by the input."""
    net = smooth(2, 16, 16, 1)

    def loss(step):
        x = place.uniform(20, 2).requires_grad_()
        y = net(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (bend,) = torch.autograd.grad(slope[:, 0].sum(), x, create_graph=True)
        return (slope[:, 1] - bend[:, 0]).square().mean() + y.square().mean()

    train(place, net, loss)


@model
def differential_equation(place):
    """Runge-Kutta through a network."""
    net = smooth(WIDTH, 16, WIDTH)

    def loss(step):
        x = start = place.normal(5, WIDTH)
        for _ in range(3):
            a = net(x)
            b = net(x + 0.05 * a)
            c = net(x + 0.05 * b)
            x = x + 0.1 / 6 * (a + 2 * b + 2 * c + net(x + 0.1 * c))
        return F.mse_loss(x, start.roll(1, 1))

    train(place, net, loss)


@model(race=THREADS)
def equilibrium(place):
    """A fixed point found without a graph; its gradient by a hook."""
    net = nn.Linear(WIDTH, WIDTH)

    def loss(step):
        x = place.normal(5, WIDTH)
        with torch.no_grad():
            y = torch.zeros_like(x)
            for _ in range(10):
                y = (0.5 * net(y) + x).tanh()
        y = (0.5 * net(y) + x).tanh()
        before = y.clone().detach().requires_grad_()
        after = (0.5 * net(before) + x).tanh()

        def solve(grad):
            found = grad
            for _ in range(5):
                found = (
                    torch.autograd.grad(after, before, found, retain_graph=True)[0] + grad
                )
            return found

        y.register_hook(solve)
        return F.mse_loss(y, x)

    train(place, net, loss)


@model
def hypernetwork(place):
    net = smooth(4, 16, WIDTH * WIDTH)

    def loss(step):
        weights = net(place.normal(3, 4)).view(3, WIDTH, WIDTH)
        x = place.normal(3, 5, WIDTH)
        return F.mse_loss(torch.bmm(x, weights), x)

    train(place, net, loss)


@model
def gaussian_process(place):
    """A likelihood by Cholesky."""
    log_scale, log_noise = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
    net = nn.ParameterList([log_scale, log_noise])
    x, y = place.normal(12, 2), place.normal(12, 1)

    def loss(step):
        near = (-torch.cdist(x, x).square() / net[0].exp()).exp()
        matrix = near + net[1].exp() * torch.eye(12, device=place.device)
        factor = torch.linalg.cholesky(matrix)
        solved = torch.cholesky_solve(y, factor)
        half = torch.linalg.solve_triangular(factor, y, upper=False)
        fit = (y * solved).sum() + half.square().sum()
        return fit + factor.diagonal().log().sum()

    train(place, net, loss, adamw)


def well_placed(place, net):
    matrix = net(place.normal(3, WIDTH, WIDTH))
    return matrix @ matrix.mT + 2 * torch.eye(WIDTH, device=place.device)


@model
def linear_systems(place):
    net = nn.Linear(WIDTH, WIDTH)

    def loss(step):
        matrix, right = well_placed(place, net), place.normal(3, WIDTH, 2)
        total = torch.linalg.solve(matrix, right).square().mean()
        total = total + torch.linalg.inv(matrix).diagonal(dim1=1, dim2=2).sum()
        total = total + torch.logdet(matrix).mean() + torch.linalg.det(matrix / 5).mean()
        factor, pivots = torch.linalg.lu_factor(matrix)
        solved = torch.linalg.lu_solve(factor, pivots, right)
        return total + solved.mean() + torch.linalg.matrix_power(matrix / 5, 3).mean()

    train(place, net, loss)


@model
def decompositions(place):
    net = nn.Linear(WIDTH, WIDTH)

    def loss(step):
        matrix = well_placed(place, net)
        q, r = torch.linalg.qr(matrix)
        values, vectors = torch.linalg.eigh(matrix)
        total = r.diagonal(dim1=1, dim2=2).abs().log().sum() + values.log().sum()
        total = total + (vectors.square() * values[:, None]).mean() + q.square().mean()
        total = (
            total
            + torch.linalg.svdvals(matrix).sum()
            + torch.linalg.matrix_norm(matrix).sum()
        )
        return total + torch.linalg.matrix_exp(matrix / 20).mean()

    train(place, net, loss, adamw)


@model(values="aten::linalg_lstsq")
def least_squares(place):
    net = nn.Linear(4, 4)

    def loss(step):
        x, y = net(place.normal(12, 4)), place.normal(12, 2)
        found = torch.linalg.lstsq(x, y).solution
        pseudo = torch.linalg.pinv(x) @ y
        return F.mse_loss(x @ found, y) + F.mse_loss(x @ pseudo, y)

    train(place, net, loss)


@model
def spectral(place):
    """A Fourier layer over images: complex weights, einsum, inverse transforms."""
    weight = nn.Parameter(torch.randn(3, 3, 4, 3, dtype=torch.complex64) / 3)
    net = nn.ParameterList([weight])

    def loss(step):
        x = place.normal(2, 3, 8, 8)
        waves = torch.fft.rfft2(x, norm="ortho")
        kept = torch.einsum("bixy,ioxy->boxy", waves[:, :, :4, :3], net[0])
        y = torch.fft.irfft2(F.pad(kept, (0, 2, 0, 4)), norm="ortho")
        shifted = torch.fft.fftshift(torch.fft.fft(x, dim=2)).abs().mean()
        return F.mse_loss(y, x) + 0.1 * shifted

    train(place, net, loss)


@model(values="aten::equal")
def short_time_fourier(place):
    net = nn.Linear(64, 64)
    window = torch.hann_window(16, device=place.device)

    def loss(step):
        x = place.normal(3, 64)
        y = net(x)
        options = {"n_fft": 16, "hop_length": 8, "window": window, "return_complex": True}
        one, two = torch.stft(y, **options), torch.stft(x, **options)
        del options["return_complex"]
        back = torch.istft(one, **options, length=64)
        return (
            (one.abs() - two.abs()).square().mean()
            + one.angle().cos().mean()
            + back.std()
        )

    train(place, net, loss)


@model
def complex_layers(place):
    net = nn.Sequential(nn.Linear(WIDTH, 12), nn.Linear(12, WIDTH)).to(torch.complex64)

    def loss(step):
        x = torch.complex(place.normal(9, WIDTH), place.normal(9, WIDTH))
        y = net[0](x)
        y = net[1](y * torch.sigmoid(y.abs()))
        return (y - x.conj()).abs().square().mean() + (y * x.conj()).imag.mean()

    train(place, net, loss)


@model
def quaternions(place):
    """Rotations: cross products, norms, einsum with repeated indices, kron."""
    net = nn.Linear(WIDTH, 4)

    def loss(step):
        q = F.normalize(net(place.normal(9, WIDTH)), dim=1)
        v = place.normal(9, 3)
        axis = q[:, 1:]
        turned = v + 2 * torch.linalg.cross(
            axis, torch.linalg.cross(axis, v) + q[:, :1] * v
        )
        outer = torch.einsum("bi,bj->bij", q, q)
        parts = torch.kron(outer[0], outer[1]).trace() + torch.tensordot(q, q).mean()
        return F.mse_loss(turned, v.roll(1, 1)) + parts + outer.tril(-1).sum()

    train(place, net, loss)


@model
def spline(place):
    """A table that is searched and interpolated, and a polynomial."""
    heights = nn.Parameter(torch.linspace(-1, 1, 9))
    net = nn.ParameterList([heights])
    knots = torch.linspace(-2, 2, 9).to(place.device)

    def loss(step):
        x = place.normal(30).clamp(-1.9, 1.9)
        right = torch.searchsorted(knots, x).clamp(1, 8)
        share = (x - knots[right - 1]) / (knots[right] - knots[right - 1])
        y = torch.lerp(net[0][right - 1], net[0][right], share)
        powers = torch.vander(x, 4)
        fine = torch.bucketize(y.detach(), knots)
        area = torch.trapezoid(net[0], knots) + torch.cumulative_trapezoid(net[0]).mean()
        return F.mse_loss(y, powers.mean(1)) + area + 0 * fine.float().mean()

    train(place, net, loss)
