// The history reader's thread. It answers accounting queries from the store, in parallel to the
// loop, one page each, the oldest query first. It shares nothing with the loop except the store's
// own read transactions: questions come in and answers go out as values.
//
// An answer is handed to `post`, which must run it on the asker's thread (Loop::post).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "common/proto/history.h"
#include "common/result.h"
#include "ctld/acct/history.h"
#include "ctld/store/store.h"

namespace gantry::acct {

inline constexpr std::size_t kMaxQuestions = 1024;  // questions that wait; further ones are refused

class HistoryReader {
 public:
  using Done = std::function<void(Result<proto::HistoryReply>)>;
  using Post = std::function<void(std::function<void()>)>;

  // `store` must outlive the reader.
  HistoryReader(const store::Store& store, Post post);
  // Waits for the page that is being read. Questions that wait are dropped without an answer.
  ~HistoryReader();
  HistoryReader(const HistoryReader&) = delete;
  HistoryReader& operator=(const HistoryReader&) = delete;

  // `live` has the core's rows for the query's position (none in the history phase). The error
  // unavailable means that too many questions wait; `done` is then not called.
  Result<void> ask(HistoryQuery query, LiveRows live, Instant now, Done done);

 private:
  struct Question {
    HistoryQuery query;
    LiveRows live;
    Instant now;
    Done done;
  };
  void run();

  const store::Store& store_;
  Post post_;
  std::mutex mutex_;  // guards the two below
  std::deque<Question> questions_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::acct
