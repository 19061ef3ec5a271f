// The site's hook for submits (controller.policy_hook): a program, or a service on a unix socket,
// that reads a job as JSON and answers allow, warn or deny. Threads of this class ask it, so that
// the controller's loop never waits for it.
//
// A question ends after the time limit, which includes its wait for a free thread. Each user has a
// few threads and a few places in the queue, so that nobody's submits wait for all submits of
// another user.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/result.h"
#include "ctld/user_queue.h"

namespace gantry::ctld {

inline constexpr std::size_t kHookThreads = 8;
inline constexpr std::size_t kHookThreadsOfUser = 4;
inline constexpr std::size_t kMostHookQuestions = 2'000;      // waiting questions
inline constexpr std::size_t kMostHookQuestionsOfUser = 200;  // waiting questions of one user
inline constexpr std::size_t kMostHookAnswerBytes = 64 << 10;

// What the hook reads. Scripts and environments are not part of it.
struct HookQuestion {
  std::string user;
  Uid uid{};
  std::vector<std::string> groups;
  bool inside_a_job = false;  // true if a job has submitted it
  std::vector<JobSpec> jobs;  // several if they are components of a heterogeneous job
  GANTRY_FIELDS(FIELD(1, user), FIELD(2, uid), FIELD(3, groups), FIELD(4, inside_a_job),
                FIELD(5, jobs))
};

struct HookAnswer {
  std::string action;                      // "allow", "warn", "deny"
  std::string message;                     // for the user
  std::map<std::string, std::string> set;  // fields of all its jobs, by their names
  GANTRY_FIELDS(FIELD(1, action), FIELD(2, message), FIELD(3, set))
};

// Sets a field of the job to a value from the hook; the core checks it like a value of the user.
// The error names a field that is unknown, or a value that is not valid.
Result<void> set_by_hook(JobSpec& spec, const std::string& field, const std::string& value);

// Reads an answer. The error tells what is wrong with it.
Result<HookAnswer> read_answer(std::string_view text);

class PolicyHook {
 public:
  using Done = std::function<void(Result<HookAnswer>)>;
  // `post` runs a function on the loop's thread.
  using Post = std::function<void(std::function<void()>)>;

  // `path` is that of a program or of a socket.
  PolicyHook(std::string path, Duration timeout, Post post);
  // Questions that wait are dropped; a program that runs is killed.
  ~PolicyHook();
  PolicyHook(const PolicyHook&) = delete;
  PolicyHook& operator=(const PolicyHook&) = delete;

  // `done` is called on the loop's thread. The error too_many means that the limit of waiting
  // questions is reached; then `done` is not called.
  Result<void> ask(const HookQuestion& question, Done done);

 private:
  using Clock = std::chrono::steady_clock;
  struct Item {
    Uid uid{};
    std::string json;
    Clock::time_point until;
    Done done;
  };
  void serve();
  [[nodiscard]] Result<std::string> answer_to(const Item& item) const;
  [[nodiscard]] Result<std::string> run_program(const Item& item) const;
  [[nodiscard]] Result<std::string> ask_socket(const Item& item) const;

  const std::string path_;
  const std::chrono::microseconds timeout_;
  const Post post_;
  std::mutex mutex_;  // guards everything below
  UserQueue<Item> waiting_{kMostHookQuestions, kMostHookQuestionsOfUser};
  std::map<std::uint32_t, std::size_t> running_;  // by user
  bool stopping_ = false;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};

}  // namespace gantry::ctld
