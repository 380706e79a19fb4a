// SPDX-License-Identifier: Apache-2.0
#include "assume.hpp"

#include <cmath>
#include <cstring>

#include <ATen/Functions.h>

#include "auto.hpp"

namespace simtorch
{

namespace
{

using Rule = std::optional<Assumed> (*)(const Operator &op, const Stack &arguments);

Assumed all_of(Fill fill)
{
    return {{fill}, -1};
}

Assumed as_likely(Fill fill)
{
    return {{fill}, -1, true};
}

std::optional<Assumed> zero(const Operator &, const Stack &)
{
    return all_of(Fill::zero);
}

std::optional<Assumed> one(const Operator &, const Stack &)
{
    return all_of(Fill::one);
}

std::optional<Assumed> none_is(const Operator &, const Stack &)
{
    return as_likely(Fill::zero);
}

std::optional<Assumed> second_zero(const Operator &, const Stack &)
{
    return Assumed{{Fill::nothing, Fill::zero}, -1};
}

// Indices that are all different: as if the numbers were in order already.
std::optional<Assumed> second_count(const Operator &op, const Stack &arguments)
{
    const auto &dim = arguments[op.place("dim")];
    return Assumed{{Fill::nothing, Fill::count}, dim.isInt() ? dim.toInt() : -1};
}

std::optional<Assumed> sample(const Operator &op, const Stack &arguments)
{
    const bool again = arguments[op.place("replacement")].toBool();
    if (!again && arguments[op.place("num_samples")].toInt() > 1)
        return all_of(Fill::count);
    return Assumed{{Fill::draw}, arguments[0].toTensor().size(-1), true};
}

bool is_floating(const c10::IValue &value)
{
    return value.isTensor() && value.toTensor().defined() &&
           (value.toTensor().is_floating_point() || value.toTensor().is_complex());
}

// The answer of `finite number OP infinity`, and of OP with NaN.
std::optional<Assumed> beside_infinity(const Operator &op, const Stack &arguments)
{
    if (!is_floating(arguments[0]) || !arguments[1].isScalar())
        return std::nullopt;
    const auto number = arguments[1].toScalar();
    if (!number.isFloatingPoint() || std::isfinite(number.toDouble()))
        return std::nullopt;
    const double bound = number.toDouble();
    const std::string base = op.name.substr(6, 2);
    const bool yes =
        base == "ne" || (base[0] == 'l' && bound > 0) || (base[0] == 'g' && bound < 0);
    return as_likely(yes ? Fill::one : Fill::zero);
}

// A number equals itself unless it is NaN; of two where only one is known nothing says
// that they are equal (predictions and labels).
std::optional<Assumed> equality(const Operator &op, const Stack &arguments)
{
    const auto &left = arguments[0].toTensor(), &right = arguments[1].toTensor();
    const bool unequal = op.name.compare(6, 2, "ne") == 0;
    if (left.is_same(right))
        return as_likely(unequal ? Fill::zero : Fill::one);
    if (values_of(left) == SIM_UNKNOWN && values_of(right) == SIM_UNKNOWN)
        return std::nullopt;
    if (left.dim() == 0 || right.dim() == 0)
        return std::nullopt;
    return all_of(unequal ? Fill::one : Fill::zero);
}

// Gradients are taken to be finite: what was found so far stays.
std::optional<Assumed> unscale(const Operator &, const Stack &)
{
    return Assumed{{Fill::nothing, Fill::same}, -1, true};
}

struct Row {
    const char *name; // with its overload, or without for all
    Rule rule;
};

const Row rows[] = {
    // Indices.
    {"argmax", zero},
    {"argmin", zero},
    {"max.dim", second_zero},
    {"min.dim", second_zero},
    {"median.dim", second_zero},
    {"nanmedian.dim", second_zero},
    {"mode", second_zero},
    {"kthvalue", second_zero},
    {"topk", second_count},
    {"sort", second_count},
    {"multinomial", sample},
    {"searchsorted", zero},
    {"bucketize", zero},
    // All numbers are finite.
    {"isnan", none_is},
    {"isposinf", none_is},
    {"isneginf", none_is},
    {"_amp_foreach_non_finite_check_and_unscale_", unscale},
    {"eq.Scalar", beside_infinity},
    {"ne.Scalar", beside_infinity},
    {"lt.Scalar", beside_infinity},
    {"le.Scalar", beside_infinity},
    {"gt.Scalar", beside_infinity},
    {"ge.Scalar", beside_infinity},
    {"eq.Tensor", equality},
    {"ne.Tensor", equality},
    // Checks pass.
    {"all", one},
    {"_is_all_true", one},
    {"any", zero},
    {"_is_any_true", zero},
};

Rule rule_of(const std::string &name)
{
    const std::string plain = name.substr(strlen("aten::"));
    const std::string base = plain.substr(0, plain.find('.'));
    for (const auto &row : rows)
        if (plain == row.name || base == row.name)
            return row.rule;
    return nullptr;
}

} // namespace

std::optional<Assumed> assume(const Operator &op, const Stack &arguments)
{
    const Rule rule = rule_of(op.name);
    return rule ? rule(op, arguments) : std::nullopt;
}

bool can_assume(const std::string &name)
{
    return rule_of(name) != nullptr;
}

static void count(const at::Tensor &alias, int64_t dim)
{
    const int64_t d = alias.dim() ? dim + (dim < 0 ? alias.dim() : 0) : 0;
    std::vector<int64_t> shape(static_cast<size_t>(alias.dim()), 1);
    if (alias.dim())
        shape[static_cast<size_t>(d)] = alias.size(d);
    alias.copy_(at::arange(alias.dim() ? alias.size(d) : 1, alias.options()).view(shape));
}

void fill(const at::Tensor &alias, Fill how, int64_t number, at::Generator generator)
{
    if (how == Fill::zero || how == Fill::one)
        alias.fill_(how == Fill::one);
    if (how == Fill::count)
        count(alias, number);
    if (how == Fill::draw)
        alias.random_(0, number, std::move(generator));
}

} // namespace simtorch
