// A bounded pipe of batches between the thread that reads and the thread that builds.
#include "ctld/recovery.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "ctld/core/core.h"
#include "ctld/core/job_reader.h"
#include "ctld/store/store.h"

namespace gantry::ctld {
namespace {

struct Record {  // a record of any table except that of jobs
  store::Table table;
  Bytes key;
  Bytes value;
};
using Piece = std::variant<Record, core::ReadPiece, store::JournalEntry>;
using Batch = std::vector<Piece>;

// A batch of jobs has some hundred KiB, so that what one thread has written is still in the cache
// when the other one reads it.
constexpr std::size_t kBatch = 128;   // pieces in a batch
constexpr std::size_t kWaiting = 16;  // batches in the pipe

class Pipe {
 public:
  // Waits for room. Returns false if the other side has given up.
  bool put(Batch batch) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return closed_ || batches_.size() < kWaiting; });
    if (closed_) return false;
    batches_.push_back(std::move(batch));
    lock.unlock();
    wake_.notify_all();
    return true;
  }
  // Waits for a batch. An empty one marks the end.
  Batch take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return closed_ || !batches_.empty(); });
    if (batches_.empty()) return {};
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    lock.unlock();
    wake_.notify_all();
    return batch;
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Batch> batches_;
  bool closed_ = false;
};

// The thread that reads.
class Ahead {
 public:
  Ahead(const store::Store& store, Pipe& pipe) : store_(store), pipe_(pipe) {}

  Result<void> run() {
    store::LoadVisitor visitor;
    visitor.record = [&](store::Table table, std::string_view key, std::string_view value) {
      if (table != store::Table::job_state) return put(Record{table, Bytes(key), Bytes(value)});
      reader_.record(JobId(store::ordered_key_value(key)), value);
      return Result<void>{};
    };
    visitor.spec = [&](JobId id, std::string_view data) -> Result<void> {
      if (auto ok = count(); !ok) return ok;
      ASSIGN(job, reader_.spec(id, data));
      return put(core::ReadPiece(std::move(*job)));
    };
    visitor.blob = [](const store::Digest&, std::size_t) { return Result<void>{}; };
    visitor.event = [&](EventSeq seq, std::string_view data) -> Result<void> {
      if (auto ok = rest(); !ok) return ok;
      return put(store::JournalEntry{seq, Bytes(data)});
    };
    auto done = store_.load(visitor);
    if (done) done = rest();
    if (done && !batch_.empty() && !pipe_.put(std::move(batch_))) done = given_up();
    return done;
  }

 private:
  static tl::unexpected<Error> given_up() {  // the builder's error is reported instead
    return fail(ErrorCode::internal, "the load was given up");
  }
  Result<void> put(Piece piece) {
    batch_.push_back(std::move(piece));
    if (batch_.size() < kBatch) return {};
    if (!pipe_.put(std::exchange(batch_, {}))) return given_up();
    batch_.reserve(kBatch);
    return {};
  }
  Result<void> count() {
    return std::exchange(counted_, true) ? Result<void>{} : put(core::ReadPiece(reader_.count()));
  }
  Result<void> rest() {
    return std::exchange(told_rest_, true) ? Result<void>{} : put(core::ReadPiece(reader_.rest()));
  }

  const store::Store& store_;
  Pipe& pipe_;
  core::JobReader reader_;
  Batch batch_;
  bool counted_ = false;
  bool told_rest_ = false;
};

Result<void> build(core::Core& core, Piece&& piece) {
  struct Build {
    core::Core& core;
    Result<void> operator()(Record&& r) const { return core.load_record(r.table, r.key, r.value); }
    Result<void> operator()(core::ReadPiece&& read) const {
      core.load_read(std::move(read));
      return {};
    }
    Result<void> operator()(store::JournalEntry&& entry) const { return core.replay(entry); }
  };
  return std::visit(Build{core}, std::move(piece));
}

}  // namespace

Result<void> recover(core::Core& core, const store::Store& store) {
  Pipe pipe;
  Result<void> read;
  std::thread thread([&] {
    read = Ahead(store, pipe).run();
    pipe.close();
  });
  Result<void> built;
  for (Batch batch = pipe.take(); built && !batch.empty(); batch = pipe.take())
    for (Piece& piece : batch)
      if (built) built = build(core, std::move(piece));
  pipe.close();
  thread.join();
  return built ? read : built;
}

}  // namespace gantry::ctld
