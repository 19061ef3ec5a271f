// The crash of a controller, and how the next one recovers from the store; see world.h.
#include "common/assert.h"
#include "controller.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/core.h"
#include "ctld/sched/change.h"
#include "ctld/store/store.h"
#include "world.h"

namespace gantry::core::test {

void World::fold() {
  const store::FoldBatch batch = core_->take_fold();
  const auto done = store_.fold(batch);
  GANTRY_ASSERT(done.has_value(), "the memory store takes a fold");
}

std::unique_ptr<Core> loaded(const Config& config, const store::MemoryStore& store) {
  auto core = std::make_unique<Core>(config);
  store::LoadVisitor visitor;
  visitor.record = [&](store::Table t, std::string_view k, std::string_view v) {
    return core->load_record(t, k, v);
  };
  visitor.spec = [&](JobId id, std::string_view data) { return core->load_spec(id, data); };
  visitor.blob = [](const store::Digest&, std::size_t) { return Result<void>{}; };
  visitor.event = [&](EventSeq seq, std::string_view data) {
    return core->replay({seq, Bytes(data)});
  };
  const auto done = store.load(visitor);
  if (!done) assertion_failed("load", __FILE__, __LINE__, done.error().message);
  return core;
}

// The controller crashes: its memory is lost, and the nodes notice a new epoch.
void World::restart() {
  store_.restart();
  core_ = loaded(config_, store_);
  const auto started = core_->start(now_);
  GANTRY_ASSERT(started.has_value(), "a recovered core starts");
  finish_turn();
  replica_ = std::make_unique<sched::Replica>();
  core_->full_view([&](const std::vector<sched::Change>& some) {
    for (const sched::Change& change : some) replica_->apply(change);
  });
}

// The copy replaces the store and is accepted (ctld/age/accept.h); the nodes keep what they know.
void World::accept_copy() {
  store_ = copy_.value();
  accepted_ = true;
  const auto core = loaded(config_, store_);
  const auto doubted = core->doubt_orders();
  GANTRY_ASSERT(doubted.has_value(), "a copy can be loaded");
  const auto done = store_.fold(core->take_fold());
  GANTRY_ASSERT(done.has_value(), "the memory store takes a fold");
  restart();
}

std::string World::check_recovery() {
  if (!core_) return {};
  const std::string live = records_text(core_->state());
  if (accepted_) return recovery_from_store(live);
  auto empty = std::make_unique<Core>(config_);
  for (const auto& [id, data] : store_.every_spec())
    if (auto done = empty->load_spec(id, data); !done) return done.error().message;
  for (const store::JournalEntry& entry : store_.every_event())
    if (auto done = empty->replay(entry); !done) return done.error().message;
  if (const std::string text = records_text(empty->state()); text != live)
    return "the journal from empty gives\n" + text + "instead of\n" + live;
  return recovery_from_store(live);
}

std::string World::recovery_from_store(const std::string& live) const {
  const auto from_store = loaded(config_, store_);
  // no event was written, so loading has not finished
  if (store_.stats().last == store_.stats().applied) return {};
  if (const std::string text = records_text(from_store->state()); text != live)
    return "records and journal give\n" + text + "instead of\n" + live;
  const std::string wrong = audit(from_store->state());
  return wrong.empty() ? std::string() : "after recovery: " + wrong;
}

}  // namespace gantry::core::test
