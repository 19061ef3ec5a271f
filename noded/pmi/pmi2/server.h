// The PMI server of one step on one node: what its tasks put, read and wait for. Pure: bytes of
// tasks and of the other nodes' servers come in, bytes for them go out. A task that is not
// understood is heard no more and the step ends with one message, as the others would wait for it.
//
// What tasks put is seen by all of them, itself included, from the next fence on: until then it
// lies in part_, which the fence gives to the other nodes. Only this step's tasks reach this.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "noded/pmi/collect.h"
#include "noded/pmi/layout.h"
#include "noded/pmi/pmi2/wire.h"

namespace gantry::pmi2 {

inline constexpr std::size_t kMaxPart = 32u << 20;  // bytes put here between two fences
inline constexpr std::size_t kMaxNode = 4u << 20;   // bytes of what the node's tasks note
inline constexpr std::size_t kMaxWaiting = 64;      // questions of one task for what is not noted

struct Out {
  std::function<void(std::uint32_t task, std::string_view bytes)> answer;  // task of this node
  std::function<void(std::uint32_t task)> close;  // it hears what was answered, and the end
  std::function<void(std::uint32_t node, std::string_view bytes)> peer;
  std::function<void(std::uint32_t rank, int status, const std::string& why)> abort;
  std::function<void(std::uint32_t rank, const std::string& why)> fault;  // the step ends
};

class Server {
 public:
  Server(pmix::Layout layout, Out out);

  // Variables of the task of this number on our node, "NAME=value", which gets its socket as `fd`.
  [[nodiscard]] std::vector<std::string> environment(std::uint32_t task, int fd) const;
  void from_task(std::uint32_t task, std::string_view bytes);
  void gone(std::uint32_t task);  // its socket is closed
  void from_peer(std::uint32_t node, std::string_view bytes);

 private:
  struct Task {
    Version version = Version::none;
    bool open = true;
    bool in_fence = false;
    std::string in;
    std::string fence_thread;  // whose of the task's threads is to hear of the end of the fence
    std::vector<std::pair<std::string, std::string>> waiting;  // key of the node, thread
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
  void fence(std::uint32_t task, const Command& command);
  // PMI-1
  void get_maxes(std::uint32_t task, const Command& command);
  void get_appnum(std::uint32_t task, const Command& command);
  void get_universe_size(std::uint32_t task, const Command& command);
  void get_my_kvsname(std::uint32_t task, const Command& command);
  void put_1(std::uint32_t task, const Command& command);
  void get_1(std::uint32_t task, const Command& command);
  void get_by_index(std::uint32_t task, const Command& command);
  void refuse_name(std::uint32_t task, const Command& command);
  void refuse_space(std::uint32_t task, const Command& command);
  void refuse_spawn(std::uint32_t task, const Command& command);
  // PMI-2
  void full_init(std::uint32_t task, const Command& command);
  void job_id(std::uint32_t task, const Command& command);
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
  std::map<std::string, std::string, std::less<>> values_;  // of the step, since the last fence
  std::map<std::string, std::string, std::less<>> node_;    // of this node only, at once
  std::size_t node_bytes_ = 0;
  std::string part_;
  bool ended_ = false;  // a task has aborted, or is at fault: nothing more is said of it
};

}  // namespace gantry::pmi2
