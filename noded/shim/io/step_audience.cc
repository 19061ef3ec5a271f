#include "noded/shim/io/step_audience.h"

#include <unistd.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "noded/machine/files.h"
#include "noded/shim/io/step_stream.h"

namespace gantry::runtime {
namespace {

constexpr int kLastPatienceMs = 5'000;  // waits so long at the end while no attached reader reads
constexpr Duration kLongestEnd = minutes(1);  // waits no longer than this in all

}  // namespace

void StepAudience::look_for_attachments() {
  for (const std::string& name : list_dir(dir_)) {
    const bool is_notice = name.starts_with(kStepNoticePrefix);
    if ((!is_notice && !name.starts_with(kAttachPrefix)) || name.ends_with(".tmp")) continue;
    const std::string path = dir_ + "/" + name;
    const auto bytes = read_file(path);
    ::unlink(path.c_str());
    if (is_notice && bytes) pass_notice(*bytes);
    if (is_notice) continue;
    const auto attachment =
        bytes ? codec::decode<StepAttachment>(*bytes) : tl::unexpected(bytes.error());
    if (!attachment || attached_.size() >= kMostAttached) continue;
    auto io = dial_attached(shim_.setup.node, request_, *attachment);
    if (!io) continue;  // the reader waits in vain, and says so
    for (const Piece& piece : recent_) (*io)->output(piece.task, piece.stream, piece.bytes);
    for (const auto& [task, exit] : exits_) (*io)->exited(task, exit.status, exit.message);
    attached_.push_back(std::move(*io));
  }
}

// What is for the error output of a job begins with the name of Slurm's shim. The news that the job
// is being ended stays as it is; a message is the client's to name.
void StepAudience::pass_notice(std::string_view text) {
  constexpr std::string_view kName = "slurmstepd: error: ", kEnd = "*** JOB ";
  const bool named = text.starts_with(kName);
  if (named && text.substr(kName.size()).starts_with(kEnd)) return notice(text, Notice::end);
  if (named) text.remove_prefix(kName.size());
  notice(text, Notice::message);
}

void StepAudience::add_watched(std::vector<pollfd>& watched) const {
  for (const auto& one : attached_) watched.push_back({one->fd(), one->events(), 0});
}

void StepAudience::serve(const pollfd* watched, StepControl& control) {
  for (std::size_t i = 0; i < attached_.size(); ++i)
    if (watched[i].revents != 0) attached_[i]->ready(watched[i].revents, control);
  std::erase_if(attached_, [](const auto& one) { return one->lost(); });
}

void StepAudience::let_go(StepControl& control) {
  const Instant end = timer_clock() + kLongestEnd;
  while (!attached_.empty() && timer_clock() < end) {
    std::vector<pollfd> watched;
    add_watched(watched);
    const int ready = ::poll(watched.data(), watched.size(), kLastPatienceMs);
    if (ready == 0) return;
    if (ready > 0) serve(watched.data(), control);
  }
}

void StepAudience::output(std::uint32_t task, int stream, std::string_view bytes) {
  grun_->output(task, stream, bytes);
  for (const auto& one : attached_) one->output(task, stream, bytes);
  recent_.push_back({task, stream, std::string(bytes)});
  recent_bytes_ += bytes.size();
  while (recent_bytes_ > kRecentBytes) {
    recent_bytes_ -= recent_.front().bytes.size();
    recent_.pop_front();
  }
}

void StepAudience::exited(std::uint32_t task, ExitStatus status, std::string_view message) {
  grun_->exited(task, status, message);
  for (const auto& one : attached_) one->exited(task, status, message);
  exits_[task] = {status, std::string(message)};
}

void StepAudience::look_at_input(const StepControl& control) {
  grun_->look_at_input(control);
  for (const auto& one : attached_) one->look_at_input(control);
}

void StepAudience::finish(const ExitRecord& record) {
  grun_->finish(record);
  for (const auto& one : attached_) one->finish(record);
}

}  // namespace gantry::runtime
