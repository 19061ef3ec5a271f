// The site's own word about submits (controller.policy_hook): a program, or a service on a unix
// socket, that reads a job as JSON and answers allow, warn or deny. It is asked by threads of this
// class, so that the controller's loop never waits for it.
//
// A question ends after the time limit, which counts its wait for a free thread too. Each user has
// a few threads and a few places in the queue, so that nobody's submits wait for all of another's.
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
inline constexpr std::size_t kMostHookQuestions = 2'000;      // that wait
inline constexpr std::size_t kMostHookQuestionsOfUser = 200;  // of one user
inline constexpr std::size_t kMostHookAnswerBytes = 64 << 10;

// What the hook reads. Scripts and environments are not part of it.
struct HookQuestion {
  std::string user;
  Uid uid{};
  std::vector<std::string> groups;
  bool inside_a_job = false;  // a job has submitted it
  std::vector<JobSpec> jobs;  // several: components of a heterogeneous job
  GANTRY_FIELDS(FIELD(1, user), FIELD(2, uid), FIELD(3, groups), FIELD(4, inside_a_job),
                FIELD(5, jobs))
};

struct HookAnswer {
  std::string action;                      // "allow", "warn", "deny"
  std::string message;                     // for the user
  std::map<std::string, std::string> set;  // fields of all its jobs, by their names
  GANTRY_FIELDS(FIELD(1, action), FIELD(2, message), FIELD(3, set))
};

// Puts a value that the hook sets where the job has it; the core checks it like the user's own. The
// error names what is not known, or is no value of it.
Result<void> set_by_hook(JobSpec& spec, const std::string& field, const std::string& value);

// Reads an answer. The error says what is wrong with it.
Result<HookAnswer> read_answer(std::string_view text);

class PolicyHook {
 public:
  using Done = std::function<void(Result<HookAnswer>)>;
  // `post` has a function called on the loop's thread.
  using Post = std::function<void(std::function<void()>)>;

  // A path of a program, or of a socket.
  PolicyHook(std::string path, Duration timeout, Post post);
  // Questions that wait are dropped; a program that runs is killed.
  ~PolicyHook();
  PolicyHook(const PolicyHook&) = delete;
  PolicyHook& operator=(const PolicyHook&) = delete;

  // `done` is called on the loop's thread. The error too_many: as many questions wait as may, and
  // `done` is not called.
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
