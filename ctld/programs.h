// Runs the programs of triggers (ctld/core/notify/triggers.h), each as the user who set the
// trigger, a few at a time, from a thread of its own. A program that cannot be started, or fails,
// is reported.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"
#include "ctld/core/state/trigger_state.h"
#include "ctld/user_queue.h"

namespace gantry::ctld {

inline constexpr std::size_t kMostWaitingPrograms = 10'000;
inline constexpr std::size_t kMostWaitingOfUser = 1'000;  // of these, programs of one user
inline constexpr std::size_t kMostPrograms = 8;           // programs that run at a time
inline constexpr std::size_t kMostProgramsOfUser = 2;     // of these, programs of one user

class Programs {
 public:
  using Note = std::function<void(std::string)>;  // called on the thread of this class

  // Commands that the programs call use the cluster of `client_config`; "" = the usual file.
  Programs(Note note, std::string client_config);
  // Programs that wait are dropped; programs that run continue by themselves.
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  void run(std::vector<core::ProgramRun> programs);

 private:
  struct Running;
  void serve();
  // Takes the next program whose user does not have too many running already.
  std::optional<core::ProgramRun> take(const std::vector<Running>& running);

  const Note note_;
  const std::string client_config_;
  std::mutex mutex_;  // guards everything below
  UserQueue<core::ProgramRun> waiting_{kMostWaitingPrograms, kMostWaitingOfUser};
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::ctld
