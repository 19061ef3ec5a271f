// The history reader's thread; see the header.
#include "ctld/acct/history_reader.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "ctld/store/store.h"

namespace gantry::acct {

HistoryReader::HistoryReader(const store::Store& store, Post post)
    : store_(store), post_(std::move(post)), thread_([this] { run(); }) {}

HistoryReader::~HistoryReader() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<void> HistoryReader::ask(HistoryQuery query, LiveRows live, Instant now, Done done) {
  {
    std::lock_guard guard(mutex_);
    if (questions_.size() >= kMaxQuestions)
      return fail(
          ErrorCode::unavailable,
          fmt::format("{} accounting queries are waiting already: ask again later", kMaxQuestions));
    questions_.push_back({std::move(query), std::move(live), now, std::move(done)});
  }
  wake_.notify_one();
  return {};
}

void HistoryReader::run() {
  for (;;) {
    std::unique_lock guard(mutex_);
    wake_.wait(guard, [&] { return stopping_ || !questions_.empty(); });
    if (stopping_) return;
    Question question = std::move(questions_.front());
    questions_.pop_front();
    guard.unlock();
    auto reply = next_page(store_, question.query, std::move(question.live), question.now);
    post_([done = std::move(question.done), reply = std::move(reply)]() mutable {
      done(std::move(reply));
    });
  }
}

}  // namespace gantry::acct
