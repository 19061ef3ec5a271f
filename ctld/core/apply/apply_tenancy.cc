// apply() of events about tenancy documents, reservations and checkpoints.
#include <algorithm>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

void keep_revision(MutableState& state, TenancyRevision&& revision) {
  TenancyState& tenancy = state.tenancy;
  revision.bytes = codec::encode(revision).size();
  tenancy.history_bytes += revision.bytes;
  state.unfolded.revisions.push_back(revision.revision);
  tenancy.history.push_back(std::move(revision));
  while (tenancy.history.size() > 1 &&
         (tenancy.history.size() > kMaxRevisions || tenancy.history_bytes > kMaxRevisionBytes)) {
    state.unfolded.revisions.push_back(tenancy.history.front().revision);
    tenancy.history_bytes -= tenancy.history.front().bytes;
    tenancy.history.pop_front();
  }
}

void apply_event(MutableState& state, Instant at, const event::TenancyApplied& e) {
  TenancyState& tenancy = state.tenancy;
  GANTRY_ASSERT(e.revision == tenancy.revision + 1, "revisions are numbered in order");
  tenancy.revision = e.revision;
  const bool prices = std::any_of(e.changes.begin(), e.changes.end(), [](const DocumentChange& c) {
    return c.kind == tenancy::PriceBook::kKind || c.kind == tenancy::Budget::kKind;
  });
  if (prices) charge_all(state, at);  // until now the old prices apply
  for (const DocumentChange& change : e.changes) {
    const DocumentKey key{change.kind, change.name};
    if (change.after)
      tenancy.documents.insert_or_assign(key, *change.after);
    else
      tenancy.documents.erase(key);
    // A QOS that is created again under this name starts with no use.
    if (!change.after && change.kind == tenancy::PriorityClass::kKind)
      reset_use(state, key_of_use(change.name), at);
    if (!change.after && change.kind == tenancy::Tenant::kKind) forget_secrets(state, change.name);
    state.unfolded.documents.push_back(key);
  }
  if (prices) {
    state.ledger.prices = compile_prices(tenancy.documents);
    make_budgets(state, at);
  }
  tenancy.class_names.insert(tenancy.class_names.end(), e.new_classes.begin(), e.new_classes.end());
  keep_revision(state, {e.revision, at, e.author, e.comment, e.changes});
}

void apply_event(MutableState& state, Instant, const event::ReservationSet& e) {
  state.tenancy.reservations.insert_or_assign(e.reservation.name, e.reservation);
  state.unfolded.reservations.push_back(e.reservation.name);
}

void apply_event(MutableState& state, Instant, const event::ReservationRemoved& e) {
  state.tenancy.reservations.erase(e.name);
  state.unfolded.reservations.push_back(e.name);
}

void apply_event(MutableState& state, Instant at, const event::JobCheckpointed& e) {
  JobEdit job(state, e.job);
  GANTRY_ASSERT(job->active != nullptr, "a placed job");
  job->active->checkpoint = e.saved.value_or(at);
  save_bill(state, *job, std::min(at, *job->active->checkpoint));
}

void apply_event(MutableState& state, Instant at, const event::UseReset& e) {
  for (const std::string& record : e.records) reset_use(state, record, at);
}

void apply_event(MutableState& state, Instant, const event::HalfLifeSet& e) {
  state.tenancy.half_life = e.half_life;
}

}  // namespace gantry::core
