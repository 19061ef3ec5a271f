// Shared parts of the store's tests: MemoryDisk and LmdbDisk, which can be closed and opened again,
// batches with recognisable content, and an Image, which holds everything that load() hands out.
#pragma once

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ctld/store/lmdb_store.h"
#include "ctld/store/memory_store.h"

namespace gantry::store {

// A new directory under /tmp, which is removed at the end.
class TempDirectory {
 public:
  TempDirectory() {
    char pattern[] = "/tmp/gantry-store.XXXXXX";
    REQUIRE(::mkdtemp(pattern) != nullptr);
    path_ = pattern;
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct MemoryDisk {
  Store& store() { return memory; }
  void reopen() { memory.restart(); }
  MemoryStore memory;
};

struct LmdbDisk {
  LmdbDisk() {
    options.directory = directory.path() + "/state";
    open();
  }
  Store& store() { return *lmdb; }
  void open() {
    auto opened = LmdbStore::open(options);
    if (!opened) FAIL(opened.error().message);
    lmdb = std::move(*opened);
  }
  void reopen() {
    lmdb.reset();
    open();
  }
  TempDirectory directory;
  LmdbOptions options;
  std::unique_ptr<LmdbStore> lmdb;
};

inline void require_ok(const Result<void>& result) {
  if (!result) FAIL(result.error().message);
}

inline Digest digest_of(std::uint64_t n) {
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>((n + 1) * (2 * i + 3) >> (i % 4));
  digest[0] = static_cast<std::uint8_t>(n);
  digest[1] = static_cast<std::uint8_t>(n >> 8);
  return digest;
}

inline Bytes event_data(std::uint64_t seq, std::size_t size = 64) {
  Bytes data = fmt::format("event {} ", seq);
  data.resize(size, static_cast<char>('a' + seq % 26));
  return data;
}

// The next `count` events after the event `last`.
inline AppendBatch events_after(EventSeq last, std::size_t count, std::size_t size = 64) {
  AppendBatch batch;
  for (std::uint64_t i = 1; i <= count; ++i)
    batch.events.push_back({EventSeq{last.value() + i}, event_data(last.value() + i, size)});
  return batch;
}

inline FoldBatch fold_to(EventSeq applied) {
  FoldBatch batch;
  batch.applied = applied;
  return batch;
}

inline RecordChange put(Table table, Bytes key, Bytes value) {
  return {table, std::move(key), std::move(value)};
}

struct Image {
  std::map<std::pair<Table, Bytes>, Bytes> records;
  std::map<std::uint64_t, Bytes> specs;
  std::map<Digest, std::size_t> blobs;
  std::map<std::uint64_t, Bytes> events;
  friend bool operator==(const Image&, const Image&) = default;
};

inline Image load_image(const Store& store) {
  Image image;
  LoadVisitor visitor;
  visitor.record = [&](Table table, std::string_view key, std::string_view value) -> Result<void> {
    CHECK(image.specs.empty());
    image.records[{table, Bytes(key)}] = value;
    return {};
  };
  visitor.spec = [&](JobId job, std::string_view spec) -> Result<void> {
    CHECK(image.blobs.empty());
    image.specs[job.value()] = spec;
    return {};
  };
  visitor.blob = [&](const Digest& digest, std::size_t size) -> Result<void> {
    CHECK(image.events.empty());
    image.blobs[digest] = size;
    return {};
  };
  visitor.event = [&](EventSeq seq, std::string_view data) -> Result<void> {
    CHECK((image.events.empty() || image.events.rbegin()->first + 1 == seq.value()));
    image.events[seq.value()] = data;
    return {};
  };
  require_ok(store.load(visitor));
  return image;
}

}  // namespace gantry::store
