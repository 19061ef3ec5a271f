// The PMI server of one step on one node, with the values that its tasks put, read and wait for.
// The class does no I/O: bytes of tasks and of the other nodes' servers are passed in, and bytes
// for them are passed out. If a task sends an invalid command, the server ignores it from then on,
// and the step ends with one message, because the other tasks would wait for that task.
//
// A value that a task puts is seen by all tasks, itself included, from the next fence on. Until
// then it is in part_, which the fence sends to the other nodes. Only tasks of this step reach this
// server.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "noded/pmi/collect.h"
#include "noded/pmi/pmi2/wire.h"

namespace gantry::pmi2 {

inline constexpr int kGood = 0;
// The value that Slurm returns: it is not known which of several commands a task runs.
inline constexpr int kNoApplication = -1;

// Bytes that this node's tasks put between two fences.
inline constexpr std::size_t kMaxPart = 32u << 20;
// Bytes of attributes that the node's tasks set for their node.
inline constexpr std::size_t kMaxNode = 4u << 20;
// Requests of one task for attributes that nobody has set yet.
inline constexpr std::size_t kMaxWaiting = 64;

struct Out {
  std::function<void(std::uint32_t task, std::string_view bytes)> answer;  // to a task of this node
  // The task still gets its answers, and then the end of the stream.
  std::function<void(std::uint32_t task)> close;
  std::function<void(std::uint32_t node, std::string_view bytes)> peer;
  std::function<void(std::uint32_t rank, int status, const std::string& why)> abort;
  // The step ends because of this rank.
  std::function<void(std::uint32_t rank, const std::string& why)> fault;
};

class Server {
 public:
  Server(pmix::Layout layout, Out out);

  // Variables ("NAME=value") for the task with this number on this node; its socket will be `fd`.
  [[nodiscard]] std::vector<std::string> environment(std::uint32_t task, int fd) const;
  void from_task(std::uint32_t task, std::string_view bytes);
  void gone(std::uint32_t task);  // the task's socket is closed
  // With no bytes: the tasks of that node have ended.
  void from_peer(std::uint32_t node, std::string_view bytes);

 private:
  struct Task {
    Version version = Version::none;
    bool open = true;
    bool in_fence = false;
    std::string in;
    std::string fence_thread;  // the thread of the task that waits for the end of the fence
    // Attribute of the node, and the thread that waits for it.
    std::vector<std::pair<std::string, std::string>> waiting;
  };
  using Handler = void (Server::*)(std::uint32_t task, const Command& command);
  struct Entry {
    std::string_view name;
    Handler handler;
  };
  static Handler handler_of(Version version, std::string_view name);

  [[nodiscard]] std::uint32_t rank(std::uint32_t task) const {
    return layout_.first_rank(layout_.self) + task;
  }
  void obey(std::uint32_t task, const Command& command);
  void answer(std::uint32_t task, const Reply& reply) { out_.answer(task, reply.bytes()); }
  [[nodiscard]] Reply reply_to(std::uint32_t task, const Command& command) const;
  void fault(std::uint32_t task, const std::string& why);
  void enter_fence(std::uint32_t task, std::string_view thread);
  void leave_fence(const std::string& all);
  void look_for_absent();
  [[nodiscard]] std::string put(const Command& command, int& rc);

  void init(std::uint32_t task, const Command& command);
  void abort(std::uint32_t task, const Command& command);
  void finalize(std::uint32_t task, const Command& command);
  void fence(std::uint32_t task, const Command& command) {
    enter_fence(task, command.find("thrid").value_or("").substr(0, kMaxKey));
  }
  // PMI-1
  void get_maxes(std::uint32_t task, const Command& command);
  void get_appnum(std::uint32_t task, const Command&) {
    answer(task, Reply(Version::v1, "appnum").result(kGood).add("appnum", kNoApplication));
  }
  void get_universe_size(std::uint32_t task, const Command&) {
    answer(task, Reply(Version::v1, "universe_size").result(kGood).add("size", layout_.size()));
  }
  void get_my_kvsname(std::uint32_t task, const Command&) {
    answer(task, Reply(Version::v1, "my_kvsname").result(kGood).add("kvsname", layout_.name));
  }
  void put_1(std::uint32_t task, const Command& command);
  void get_1(std::uint32_t task, const Command& command);
  void get_by_index(std::uint32_t task, const Command& command);
  void refuse_name(std::uint32_t task, const Command& command);
  void refuse_space(std::uint32_t task, const Command& command);
  void refuse_spawn(std::uint32_t task, const Command& command);
  // PMI-2
  void full_init(std::uint32_t task, const Command& command);
  void job_id(std::uint32_t task, const Command& command) {
    answer(task, reply_to(task, command).result(kGood).add("jobid", layout_.name));
  }
  void job_attribute(std::uint32_t task, const Command& command);
  void put_2(std::uint32_t task, const Command& command);
  void get_2(std::uint32_t task, const Command& command);
  void put_node(std::uint32_t task, const Command& command);
  void get_node(std::uint32_t task, const Command& command);
  void refuse_2(std::uint32_t task, const Command& command);

  pmix::Layout layout_;
  Out out_;
  pmix::Collect collect_;
  std::vector<Task> tasks_;
  std::set<std::uint32_t> ended_nodes_;
  // Values of the step, as of the last fence.
  std::map<std::string, std::string, std::less<>> values_;
  // Attributes of this node only, visible at once.
  std::map<std::string, std::string, std::less<>> node_;
  std::size_t node_bytes_ = 0;
  std::string part_;
  bool ended_ = false;  // a task has aborted or failed, so no second message is sent
};

}  // namespace gantry::pmi2
