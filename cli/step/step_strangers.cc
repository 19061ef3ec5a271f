// New connections of a step: each is a stranger's until it has said hello under the step's key.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/step/step_streams.h"

namespace gantry::cli {
namespace {

constexpr std::size_t kMostStrangers = 64;  // beside one connection of each node

}  // namespace

Result<void> StepStreams::accept(StreamSource& source) {
  const auto fd = source.take();
  if (!fd && fd.error().code == ErrorCode::limit_exceeded && drop_oldest_stranger()) return {};
  if (!fd) return tl::unexpected(fd.error());
  if (!*fd) return {};
  ::fcntl(**fd, F_SETFL, ::fcntl(**fd, F_GETFL) | O_NONBLOCK);
  auto crypt = net::SecureStream::create(net::StreamRole::listener, key_);
  if (!crypt) {
    ::close(**fd);
    return tl::unexpected(crypt.error());
  }
  streams_.push_back(std::unique_ptr<Stream>(new Stream{"", **fd, std::move(*crypt)}));
  write(*streams_.back());
  const auto strangers = std::count_if(streams_.begin(), streams_.end(),
                                       [](const auto& stream) { return stream->is_strange(); });
  if (static_cast<std::size_t>(strangers) > kMostStrangers + permission_.nodes.size())
    drop_oldest_stranger();
  return {};
}

// A shim says hello as soon as it is connected, so the one that has been silent for longest is
// none.
bool StepStreams::drop_oldest_stranger() {
  const auto oldest = std::find_if(streams_.begin(), streams_.end(),
                                   [](const auto& stream) { return stream->is_strange(); });
  if (oldest == streams_.end()) return false;
  lost(**oldest, "others wait");
  return true;
}

void StepStreams::forget_strangers() {
  std::erase_if(streams_,
                [](const auto& stream) { return stream->closed && stream->node.empty(); });
}

}  // namespace gantry::cli
