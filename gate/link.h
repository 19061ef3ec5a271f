// The gate as a client of the controller: it sends what it has counted and gets the table of
// services, on a thread of its own, as every question may take seconds.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "common/loop/loop.h"
#include "common/proto/gate.h"
#include "common/result.h"

namespace gantry::gate {

class Link {
 public:
  // The answer is handed over in a turn of the loop.
  using OnAnswer = std::function<void(Result<proto::GateTable>&&)>;
  Link(loop::Loop& loop, OnAnswer on_answer);
  ~Link();  // waits for the question that is under way
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] bool is_free() const { return !busy_; }
  void ask(proto::SyncGate&& question);  // only while is_free()

 private:
  void run();

  loop::Loop& loop_;
  OnAnswer on_answer_;
  bool busy_ = false;  // for the loop's thread
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<proto::SyncGate> question_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace gantry::gate
