// Only apply() may change State, so a handler that tries to does not compile. Each concept below is
// one kind of write. All of them compile with a MutableState, none with a Context, which is what
// handlers get.
#include <doctest/doctest.h>

#include <type_traits>

#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

using namespace gantry;
using namespace gantry::core;

namespace {

template <class C>
concept SetsMember = requires(C& c) {
  c.state.last_job = JobId(1);
};
template <class C>
concept AddsJob = requires(C& c) {
  c.state.jobs.add(JobId(1));
};
template <class C>
concept ChangesJob = requires(C& c) {
  c.state.jobs.at(JobId(1)).nice = 1;
};
template <class C>
concept ChangesAttempt = requires(C& c) {
  c.state.jobs.at(JobId(1)).active->warned = true;
};
template <class C>
concept ChangesTasks = requires(C& c) {
  (*c.state.jobs.find(JobId(1))->tasks).pending.erase(1u);
};
template <class C>
concept ChangesNode = requires(C& c) {
  c.state.node(NodeId(1)).reason.clear();
};
template <class C>
concept ChangesClass = requires(C& c) {
  c.state.classes.drop(ClassId(1));
};
template <class C>
concept ChangesBook = requires(C& c) {
  c.state.budgets.accounts.begin()->second.book->told = 1;
};
template <class C>
concept ChangesAccount = requires(C& c) {
  c.state.budgets.by_tenant.begin()->second.front()->reserved = Money{1};
};
template <class C>
concept ChangesDocuments = requires(C& c) {
  c.state.tenancy.documents.clear();
};

template <class C>
constexpr int writes() {
  return SetsMember<C> + AddsJob<C> + ChangesJob<C> + ChangesAttempt<C> + ChangesTasks<C> +
         ChangesNode<C> + ChangesClass<C> + ChangesBook<C> + ChangesAccount<C> +
         ChangesDocuments<C>;
}

struct WithMutableState {
  MutableState& state;
};

}  // namespace

TEST_CASE("a handler's Context cannot change State") {
  static_assert(std::is_same_v<decltype(Context::state), const State&>);
  static_assert(!std::is_convertible_v<const State&, MutableState&>);
  CHECK(writes<WithMutableState>() == 10);
  CHECK(writes<Context>() == 0);
  CHECK(writes<const Context>() == 0);
}
