#include "noded/shim/environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace gantry::runtime {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";

bool about_the_job(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes{"SLURM_",  "GANTRY_", "CUDA_VISIBLE_",
                                                      "SLURMD_", "PMI",     "NVIDIA_VISIBLE_"};
  constexpr std::array<std::string_view, 5> kNames{"HOME", "USER", "LOGNAME", "TMPDIR",
                                                   "MASTER_ADDR"};
  for (const auto p : kPrefixes)
    if (name.starts_with(p)) return true;
  for (const auto n : kNames)
    if (name == n) return true;
  return false;
}

// Is the text well-formed UTF-8 without NUL? Overlong forms and surrogates are refused (RFC 3629).
bool is_text(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const std::size_t n = c < 0x80                ? 1
                          : c >= 0xc2 && c < 0xe0 ? 2
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xf0 && c < 0xf5 ? 4
                                                  : 0;
    if (c == 0 || n == 0 || i + n > s.size()) return false;
    for (std::size_t k = 1; k < n; ++k)
      if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return false;
    const auto second = n > 1 ? static_cast<unsigned char>(s[i + 1]) : 0;
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
        (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f))
      return false;
    i += n;
  }
  return true;
}

constexpr std::size_t kMostOfOne = 128 << 10;   // MAX_ARG_STRLEN, with the zero at the end
constexpr std::size_t kMostInAll = 1536 << 10;  // a part of the 2 MiB that a stack of 8 MiB allows

Result<void> check_text(const std::string& what, std::string_view text) {
  if (!is_text(text))
    return fail(ErrorCode::invalid_argument, what + " is not UTF-8 text, which a container needs");
  if (text.size() >= kMostOfOne)
    return fail(ErrorCode::invalid_argument, fmt::format("{} has {} bytes; the kernel takes {}",
                                                         what, text.size(), kMostOfOne - 1));
  return {};
}

// Adds the driver's libraries behind the directories that the job or the image names: these may be
// there for good reasons.
void add_driver_libraries(const LaunchRequest& request, std::map<std::string, std::string>& env) {
  if (std::none_of(request.mounts.begin(), request.mounts.end(),
                   [](const LaunchMount& m) { return m.path.starts_with(kDriverLibraries); }))
    return;
  std::string& path = env["LD_LIBRARY_PATH"];
  if ((":" + path + ":").find(fmt::format(":{}:", kDriverLibraries)) != std::string::npos) return;
  path += (path.empty() ? "" : ":") + std::string(kDriverLibraries);
}

}  // namespace

Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image) {
  std::map<std::string, std::string> all{
      {"PATH", kDefaultPath},
      {"HOME", request.owner.home.empty() ? "/" : request.owner.home},
      {"USER", request.owner.user},
      {"LOGNAME", request.owner.user},
      {"SHELL", request.owner.shell.empty() ? "/bin/sh" : request.owner.shell}};
  for (const auto& [name, value] : request.env) all[name] = value;
  for (const auto& entry : image.env) {
    const auto equals = entry.find('=');
    const auto name = entry.substr(0, equals);
    if (equals != std::string::npos && !about_the_job(name)) all[name] = entry.substr(equals + 1);
  }
  add_driver_libraries(request, all);
  all["TMPDIR"] = "/tmp";
  std::vector<std::string> env;
  env.reserve(all.size());
  constexpr std::size_t kPointer = sizeof(char*) + 1;
  std::size_t bytes = 0;
  for (const auto& [name, value] : all) {
    env.push_back(name + "=" + value);
    TRY(check_text("environment variable " + name, env.back()));
    bytes += env.back().size() + kPointer;
  }
  for (std::size_t i = 0; i < request.argv.size(); ++i) {
    TRY(check_text(fmt::format("argument {}", i + 1), request.argv[i]));
    bytes += request.argv[i].size() + kPointer;
  }
  if (bytes > kMostInAll)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("arguments and environment have {} bytes, more than the kernel takes", bytes));
  return env;
}

}  // namespace gantry::runtime
