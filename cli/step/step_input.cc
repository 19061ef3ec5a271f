// The standard input of a step: what we read goes to the first task, to one or to all of them.
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/step/step_streams.h"

namespace gantry::cli {
namespace {

constexpr std::size_t kMaxPendingInput = 1 << 20;  // bytes queued for one node

}  // namespace

bool StepStreams::reads_input(const Stream& stream) const {
  if (stream.node.empty()) return false;
  bool one = false;
  switch (options_.input) {
    case StepInput::all_tasks: return true;
    case StepInput::one_task:
      for_tasks(stream, [&](std::uint32_t rank) { one = one || rank == options_.input_rank; });
      return one;
    case StepInput::first_task:
    case StepInput::none: break;
  }
  return stream.first_rank == 0;
}

// Nothing is read before all readers are there: each of them gets all of it.
bool StepStreams::wants_input() const {
  if (!input_open_ || (options_.input == StepInput::all_tasks && !all_here())) return false;
  bool read = false;
  for (const auto& stream : streams_) {
    if (stream->closed || !reads_input(*stream)) continue;
    if (stream->crypt.output().size() >= kMaxPendingInput) return false;
    read = true;
  }
  return read;
}

void StepStreams::read_input() {
  char buffer[proto::kMaxTaskData];
  const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  proto::TaskInput input;
  if (n > 0) input.data.assign(buffer, static_cast<std::size_t>(n));
  input.end = n <= 0;
  if (input.end) input_open_ = false;
  if (input.end && attached()) return;
  for (const auto& stream : streams_)
    if (!stream->closed && reads_input(*stream)) send(*stream, {input});
}

}  // namespace gantry::cli
