# SPDX-License-Identifier: Apache-2.0
"""What a Triton kernel reads and writes, by its intermediate code (TTIR).

A pointer that reaches a store began as an argument of the kernel: that argument is
written. One that reaches a load is read. Pointers made of integers could be to anything;
kernels that make them, and those that are not understood, write something unknown.
"""

from __future__ import annotations

import typing

# Operations that lead a pointer on and write nothing, beside all of these dialects.
LEAD = {
    "tt.addptr",
    "tt.advance",
    "tt.assert",
    "tt.bitcast",
    "tt.broadcast",
    "tt.cat",
    "tt.descriptor_gather",
    "tt.descriptor_load",
    "tt.expand_dims",
    "tt.join",
    "tt.load",
    "tt.make_tensor_descriptor",
    "tt.make_tensor_ptr",
    "tt.print",
    "tt.ptr_to_int",
    "tt.reshape",
    "tt.splat",
    "tt.split",
    "tt.trans",
    "tt.unsplat",
}
DIALECTS = ("arith.", "math.", "scf.", "ub.")
READ = {
    "tt.atomic_cas",
    "tt.atomic_rmw",
    "tt.descriptor_gather",
    "tt.descriptor_load",
    "tt.load",
}
IMPURE = {"tt.elementwise_inline_asm", "tt.extern_elementwise"}


class Unknown(Exception):
    """It may write anything."""


class Uses(typing.NamedTuple):
    """Of a kernel: how many arguments it has, and which of them."""

    taken: int
    written: typing.List[int]
    read: typing.List[int]


def leads(kind: str) -> bool:
    return "!tt.ptr" in kind or "tensordesc" in kind


class Flow:
    """Values that may be the same pointer are of one class, named by one of them."""

    def __init__(self) -> None:
        self.parents: typing.Dict[int, int] = {}
        self.written: typing.Set[int] = set()
        self.read: typing.Set[int] = set()
        self.jumps = False

    def class_of(self, value: int) -> int:
        while value in self.parents:
            value = self.parents[value]
        return value

    def join(self, values: typing.Sequence[int]) -> None:
        for value in values[1:]:
            first, other = self.class_of(values[0]), self.class_of(value)
            if first != other:
                self.parents[other] = first

    def among(self, value: int, others: typing.Set[int]) -> bool:
        return self.class_of(value) in {self.class_of(one) for one in others}


def pointers(values: typing.Iterable[typing.Any]) -> typing.List[int]:
    found = []
    for value in values:
        kind = str(value.get_type())
        if kind.count("!tt.ptr") > 1:
            raise Unknown("pointers to pointers")
        if leads(kind):
            found.append(value.id())
    return found


def arguments(block: typing.Any) -> typing.List[typing.Any]:
    return [block.get_argument(i) for i in range(block.get_num_arguments())]


def is_impure(op: typing.Any) -> bool:
    """Foreign code that may write to an address that it is given."""
    foreign = op.get_name() in IMPURE and op.get_num_operands() > 0
    return foreign and not op.get_bool_attr("pure")


def follow(
    op: typing.Any, flow: Flow, inside: typing.Dict[int, typing.List[int]]
) -> None:
    """`inside`: pointers that each region's blocks take, and hand out at their end."""
    name = op.get_name()
    if name == "tt.int_to_ptr" or is_impure(op):
        raise Unknown(name)
    taken = pointers(op.get_operand(i) for i in range(op.get_num_operands()))
    made = pointers(op.get_result(i) for i in range(op.get_num_results()))
    block = op.get_block()
    region = block.get_parent() if block else None
    if region is not None:
        outer = inside.setdefault(region.id(), [])
        outer += pointers(arguments(block))
        outer += taken if name in ("scf.yield", "scf.condition") else []
    for i in range(op.get_num_regions()):
        taken = taken + inside.get(op.get_region(i).id(), [])
    flow.jumps = flow.jumps or name.startswith("cf.")
    if name not in LEAD and not name.startswith(DIALECTS):
        flow.written.update(taken)
    flow.join(taken + made)


def stores(op: typing.Any, flow: Flow) -> bool:
    if op.get_name() not in ("tt.store", "tt.atomic_rmw", "tt.atomic_cas"):
        return False
    flow.written.update(pointers([op.get_operand(0)]))
    return True


def of_module(module: typing.Any, kernel: str) -> Uses:
    flow = Flow()
    inside: typing.Dict[int, typing.List[int]] = {}
    entry: typing.List[typing.Any] = []
    first_blocks: typing.Dict[int, typing.Any] = {}

    def visit(op: typing.Any) -> None:
        name = op.get_name()
        block = op.get_block()
        region = block.get_parent() if block else None
        if region is not None:
            first_blocks.setdefault(region.id(), block)
        if name == "tt.func":
            if op.get_str_attr("sym_name") == kernel:
                entry.extend(arguments(first_blocks[op.get_region(0).id()]))
                flow.jumps = flow.jumps or op.get_region(0).size() > 1
        elif name != "builtin.module":
            if name in READ:
                flow.read.update(pointers([op.get_operand(0)]))
            if not stores(op, flow):
                follow(op, flow, inside)

    module.walk(visit)
    if not entry:
        raise Unknown("no such kernel")
    places = range(len(entry))
    if flow.jumps:
        return Uses(len(entry), list(places), [])
    written, read = (
        [i for i in places if flow.among(entry[i].id(), found)]
        for found in (flow.written, flow.read)
    )
    return Uses(len(entry), written, read)


def of_kernel(path: str, kernel: str) -> typing.Optional[Uses]:
    """None: unknown."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    try:
        return of_module(ir.parse_mlir_module(path, context), kernel)
    except Exception:  # tried: triton 3.9; of another one nothing is known
        return None
