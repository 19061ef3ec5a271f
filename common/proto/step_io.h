// Frames between grun and the step shim of one node, over a net::SecureStream. They are not
// messages of messages.def: the stream is made for one step, and both ends know its version from
// the permission that started it.
//
// The shim connects and sends StepHello. Then it sends output as it comes, and one TaskExit for
// each task after the last of its output; StepNodeDone is its last frame. grun sends input to the
// task of rank 0, and signals to all tasks. If a stream is cut, the node's tasks are ended, because
// nobody reads any more.
//
// Other readers may be attached (AttachStep). The shim connects to each of them, sends StepHello
// and the TaskExit of tasks that have ended, and then the same frames as to grun. They only send
// input, and may leave at any time.
//
// grun also passes on what the PMIx or PMI servers of the step's nodes send to each other
// (StepPeer), because the nodes may have no network of their own.
#pragma once

#include <string>
#include <variant>

#include "common/fields.h"
#include "common/job/job_state.h"
#include "common/types.h"

namespace gantry::proto {

inline constexpr std::size_t kMaxTaskData = 64 * 1024;  // bytes of output or input in one frame

struct StepHello {
  static constexpr int kKind = 1;
  static constexpr std::string_view kName = "hello";
  std::string node;
  std::uint32_t first_rank = 0;
  std::uint32_t tasks = 0;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, first_rank), FIELD(3, tasks))
};

struct TaskOutput {
  static constexpr int kKind = 2;
  static constexpr std::string_view kName = "output";
  std::uint32_t rank = 0;
  bool std_err = false;
  Bytes data;
  GANTRY_FIELDS(FIELD(1, rank), FIELD(2, std_err), FIELD(3, data))
};

struct TaskExit {
  static constexpr int kKind = 3;
  static constexpr std::string_view kName = "exit";
  std::uint32_t rank = 0;
  ExitStatus status;
  std::string message;  // why it could not run; "" = it ran
  GANTRY_FIELDS(FIELD(1, rank), FIELD(2, status), FIELD(3, message))
};

struct StepNodeDone {
  static constexpr int kKind = 4;
  static constexpr std::string_view kName = "done";
  Usage usage;
  bool out_of_memory = false;
  bool timed_out = false;  // the step's own time limit has ended its tasks
  GANTRY_FIELDS(FIELD(1, usage), FIELD(2, out_of_memory), FIELD(3, timed_out))
};

struct TaskInput {
  static constexpr int kKind = 5;
  static constexpr std::string_view kName = "input";
  Bytes data;
  bool end = false;  // end of file after data
  GANTRY_FIELDS(FIELD(1, data), FIELD(2, end))
};

struct StepSignal {
  static constexpr int kKind = 6;
  static constexpr std::string_view kName = "signal";
  std::int32_t signal = 0;
  GANTRY_FIELDS(FIELD(1, signal))
};

struct StepWindow {  // size of the terminal of task 0
  static constexpr int kKind = 7;
  static constexpr std::string_view kName = "window";
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, columns))
};

inline constexpr std::uint32_t kAllOtherNodes = 0xffffffff;

struct StepPeer {  // bytes of one node's PMIx or PMI server to another's, in order
  static constexpr int kKind = 8;
  static constexpr std::string_view kName = "peer";
  // Index in the permission's nodes: the receiver on the way to grun, the sender on the way from
  // grun.
  std::uint32_t node = 0;
  // At most kMaxTaskData; empty, from grun: the node's tasks have ended, so its server sends no
  // more.
  Bytes data;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, data))
};

struct StepAbort {  // a task has called MPI_Abort or has made an error: the whole step ends
  static constexpr int kKind = 9;
  static constexpr std::string_view kName = "abort";
  std::uint32_t rank = 0;
  // Not set: the task did not call it, and `message` tells what is wrong.
  std::optional<std::int32_t> status;
  std::string message;
  GANTRY_FIELDS(FIELD(1, rank), FIELD(2, status), FIELD(3, message))
};

struct StepSkipped {  // tells a slow attached reader which output it will not get
  static constexpr int kKind = 10;
  static constexpr std::string_view kName = "skipped";
  std::uint64_t bytes = 0;
  GANTRY_FIELDS(FIELD(1, bytes))
};

struct StepNotice {  // a line for the user, from the step's shim or by scontrol notify
  static constexpr int kKind = 11;
  static constexpr std::string_view kName = "notice";
  std::string text;      // without a newline
  bool of_shim = false;  // the line is complete; otherwise the client puts its own name in front
  bool ends = false;     // the step's tasks are being ended
  GANTRY_FIELDS(FIELD(1, text), FIELD(2, of_shim), FIELD(3, ends))
};

struct StepFrame {
  std::variant<StepHello, TaskOutput, TaskExit, StepNodeDone, TaskInput, StepSignal, StepWindow,
               StepPeer, StepAbort, StepSkipped, StepNotice>
      body;
  GANTRY_FIELDS(FIELD(1, body))
};

}  // namespace gantry::proto
