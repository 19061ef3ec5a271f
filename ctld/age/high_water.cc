#include "ctld/age/high_water.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace gantry::age {
namespace {

constexpr std::string_view kFirstLine = "gantry high-water mark 1";

tl::unexpected<Error> cannot(std::string_view doing, const std::string& path, int error) {
  const ErrorCode code =
      error == ENOSPC || error == EDQUOT ? ErrorCode::out_of_space : ErrorCode::io_error;
  return fail(code, fmt::format("cannot {} {}: {}", doing, path, std::strerror(error)));
}

// Writes and syncs a file. Returns 0 or errno.
int write_synced(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const ssize_t n = ::write(fd, text.data(), text.size());
  int error = n < 0 ? errno : static_cast<std::size_t>(n) < text.size() ? ENOSPC : 0;
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  ::close(fd);
  return error;
}

int sync_parent(const std::string& path) {
  const int fd =
      ::open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

}  // namespace

std::string high_water_path(const std::string& state_dir) {
  return state_dir + "/highwater";
}

Result<void> replace_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  int error = write_synced(fresh, text);
  if (error == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) error = sync_parent(path);
  if (error != 0) return cannot("write", path, error);
  return {};
}

Result<std::optional<std::string>> read_whole(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) return cannot("read", path, EIO);
  return text;
}

Result<std::optional<HighWater>> load_high_water(const std::string& state_dir) {
  const std::string path = high_water_path(state_dir);
  ASSIGN(text, read_whole(path));
  if (!*text) return std::nullopt;
  std::istringstream in(**text);
  std::string first;
  std::getline(in, first);
  std::array<std::uint64_t, 5> numbers{};
  constexpr std::array<std::string_view, 5> kNames{"epoch", "event", "job", "accepted", "hold"};
  bool sound = first == kFirstLine;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    std::string name;
    sound = sound && (in >> name >> numbers[i]) && name == kNames[i];
  }
  if (!sound)
    return fail(ErrorCode::malformed,
                fmt::format("{} is damaged: put a copy of it in place, or remove it if data.mdb "
                            "beside it is not from a copy (docs/store.md)",
                            path));
  return HighWater{Epoch(numbers[0]), EventSeq(numbers[1]), JobId(numbers[2]), Epoch(numbers[3]),
                   numbers[4] != 0};
}

Result<void> save_high_water(const std::string& state_dir, const HighWater& mark) {
  return replace_file(high_water_path(state_dir),
                      fmt::format("{}\nepoch {}\nevent {}\njob {}\naccepted {}\nhold {}\n",
                                  kFirstLine, mark.epoch.value(), mark.event.value(),
                                  mark.job.value(), mark.accepted.value(), mark.hold ? 1 : 0));
}

std::string behind(const HighWater& mark, Epoch epoch, EventSeq last) {
  if (epoch < mark.epoch)
    return fmt::format("it is of controller start {}, and start {} has been there", epoch.value(),
                       mark.epoch.value());
  if (last < mark.event)
    return fmt::format("it ends with event {}, and event {} has been there", last.value(),
                       mark.event.value());
  return {};
}

}  // namespace gantry::age
