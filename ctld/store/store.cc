// Code that both implementations share: table names, ordered keys, and the checks that turn a
// caller's bug into an assertion before anything is written.
#include "ctld/store/store.h"

#include "common/assert.h"
#include "ctld/store/batch_check.h"

namespace gantry::store {

std::string_view name_of(Table table) {
  switch (table) {
#define X(name, number, what) \
  case Table::name: return #name;
    GANTRY_STORE_TABLES(X)
#undef X
  }
  return "?";
}

Bytes ordered_key(std::uint64_t value) {
  Bytes key(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) key[i] = static_cast<char>(value >> (56 - 8 * i));
  return key;
}

std::uint64_t ordered_key_value(std::string_view key) {
  GANTRY_ASSERT(key.size() == 8, "an ordered key has eight octets");
  std::uint64_t value = 0;
  for (char c : key) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

void check_append(const AppendBatch& batch, EventSeq last, JobId last_spec) {
  std::uint64_t seq = last.value();
  for (const JournalEntry& entry : batch.events)
    GANTRY_ASSERT(entry.seq.value() == ++seq, "events must continue the journal without a gap");
  JobId above = last_spec;
  for (const auto& [job, spec] : batch.specs) {
    GANTRY_ASSERT(job > above, "job ids of new specs must ascend");
    above = job;
  }
}

void check_fold(const FoldBatch& batch, EventSeq applied, EventSeq last) {
  GANTRY_ASSERT(batch.applied >= applied, "a fold cannot go back");
  GANTRY_ASSERT(batch.applied <= last, "a fold cannot go beyond the journal");
  const RecordChange* before = nullptr;
  for (const RecordChange& change : batch.records) {
    GANTRY_ASSERT(!change.key.empty() && change.key.size() <= kMaxKeyBytes,
                  "a record's key must have 1 to 500 octets");
    GANTRY_ASSERT(before == nullptr || before->table < change.table ||
                      (before->table == change.table && before->key < change.key),
                  "records of a fold must be sorted by table and key, each once");
    before = &change;
  }
  for (std::size_t i = 1; i < batch.spec_deletes.size(); ++i)
    GANTRY_ASSERT(batch.spec_deletes[i - 1] < batch.spec_deletes[i],
                  "spec deletes must be sorted, each once");
  for (const HistoryEntry& entry : batch.history)
    GANTRY_ASSERT(entry.end.us >= 0, "a history entry's end time cannot be negative");
}

}  // namespace gantry::store
