#include "ctld/age/accept.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "ctld/core/core.h"
#include "ctld/core/state/record.h"
#include "ctld/store/lmdb_store.h"
#include "ctld/store/store.h"

namespace gantry::age {
namespace {

// The changes to the store's records: those from events up to the last one, and those from
// accepting the store. `meta` is the record with epoch and ids.
struct Loaded {
  store::FoldBatch fold;
  core::MetaRecord meta;
};

Result<Loaded> load(const Config& config, const store::Store& store) {
  Loaded out;
  core::Core core(config);
  store::LoadVisitor visitor;
  visitor.record = [&](store::Table table, std::string_view key,
                       std::string_view value) -> Result<void> {
    if (table == store::Table::meta) {
      ASSIGN(meta, codec::decode<core::MetaRecord>(value));
      out.meta = std::move(*meta);
    }
    return core.load_record(table, key, value);
  };
  visitor.spec = [&](JobId job, std::string_view spec) { return core.load_spec(job, spec); };
  visitor.blob = [](const store::Digest&, std::size_t) { return Result<void>{}; };
  visitor.event = [&](EventSeq seq, std::string_view data) {
    return core.replay(store::JournalEntry{seq, Bytes(data)});
  };
  TRY(store.load(visitor));
  TRY(core.doubt_orders());
  out.fold = core.take_fold();
  out.fold.applied = store.stats().last;
  for (const store::RecordChange& change : out.fold.records) {
    if (change.table != store::Table::meta || !change.value) continue;
    ASSIGN(meta, codec::decode<core::MetaRecord>(*change.value));
    out.meta = std::move(*meta);
  }
  return out;
}

}  // namespace

Result<HighWater> accept_old_store(const Config& config, store::Store& store,
                                   const HighWater& known) {
  ASSIGN(loaded, load(config, store));
  core::MetaRecord& meta = loaded->meta;
  const EventSeq last = store.stats().last;
  if (behind(known, meta.epoch, last).empty())
    return fail(ErrorCode::wrong_state,
                fmt::format("the store in {} is not older than anything that is known: there is "
                            "nothing to accept, start the controller as usual",
                            config.controller.state_dir));
  meta.epoch = Epoch(std::max(meta.epoch, known.epoch).value() + 1);
  meta.last_job = JobId(std::max(meta.last_job, known.job).value() + kJobMargin);
  meta.applied = last;
  auto& records = loaded->fold.records;
  std::erase_if(records, [](const auto& r) { return r.table == store::Table::meta; });
  records.insert(records.begin(), {store::Table::meta, "controller", codec::encode(meta)});
  TRY(store.fold(loaded->fold));
  return HighWater{meta.epoch, last, meta.last_job, meta.epoch, true};
}

Result<HighWater> accept_old_store(const Config& config) {
  const ControllerConfig& c = config.controller;
  ASSIGN(known, load_high_water(c.state_dir));
  auto store =
      store::LmdbStore::open({.directory = c.state_dir,
                              .map_bytes = static_cast<std::uint64_t>(c.store_map),
                              .max_map_bytes = static_cast<std::uint64_t>(c.store_map_max)});
  if (!store) return tl::unexpected(store.error());
  const auto mark = accept_old_store(config, **store, known->value_or(HighWater{}));
  if (!mark) return mark;
  TRY(save_high_water(c.state_dir, *mark));
  return mark;
}

}  // namespace gantry::age
