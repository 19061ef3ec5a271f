// How orders, inputs, actions and reports are copied, moved and destroyed; compiled here alone.
#include "noded/core/core_values.h"

#include <utility>

namespace gantry::node {

Order::Order() = default;
Order::Order(variant order) : variant(std::move(order)) {}
Order::Order(const Order&) = default;
Order::Order(Order&&) noexcept = default;
Order& Order::operator=(const Order&) = default;
Order& Order::operator=(Order&&) noexcept = default;
Order::~Order() = default;

Input::Input() = default;
Input::Input(const Input&) = default;
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(const Input&) = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

Action::Action() = default;
Action::Action(const Action&) = default;
Action::Action(Action&&) noexcept = default;
Action& Action::operator=(const Action&) = default;
Action& Action::operator=(Action&&) noexcept = default;
Action::~Action() = default;

Report::Report() = default;
Report::Report(const Report&) = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(const Report&) = default;
Report& Report::operator=(Report&&) noexcept = default;
Report::~Report() = default;

}  // namespace gantry::node
