#include "common/job/process_limits.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "common/text/split.h"

namespace gantry {

Result<void> check_limits(const ProcessLimits& limits) {
  if (limits.umask && *limits.umask > 0777)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a umask is 0 to 0777, not {:#o}", *limits.umask));
  for (std::size_t i = 0; i < limits.soft.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (limits.soft[k].name == limits.soft[i].name)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("the limit {} is given twice", enum_name(limits.soft[i].name)));
  return {};
}

Result<std::vector<LimitName>> parse_limit_names(std::string_view text) {
  std::vector<LimitName> out;
  for (const std::string& word : split_list(text)) {
    std::string name = word;
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (name.starts_with("RLIMIT_")) name.erase(0, 7);
    if (name == "NONE") continue;
    bool known = name == "ALL";
    for (const auto& [value, own] : enum_names(LimitName{})) {
      if (name != "ALL" && name != own) continue;
      known = true;
      if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
    }
    if (!known)
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("\"{}\" is not ALL, NONE, AS, CORE, CPU, DATA, FSIZE, MEMLOCK, NOFILE, "
                      "NPROC, RSS or STACK",
                      word));
  }
  return out;
}

int resource_of(LimitName name) {
  switch (name) {
    case LimitName::address_space: return RLIMIT_AS;
    case LimitName::core: return RLIMIT_CORE;
    case LimitName::cpu_seconds: return RLIMIT_CPU;
    case LimitName::data: return RLIMIT_DATA;
    case LimitName::file_size: return RLIMIT_FSIZE;
    case LimitName::locked_memory: return RLIMIT_MEMLOCK;
    case LimitName::open_files: return RLIMIT_NOFILE;
    case LimitName::processes: return RLIMIT_NPROC;
    case LimitName::resident_set: return RLIMIT_RSS;
    case LimitName::stack: return RLIMIT_STACK;
  }
  return RLIMIT_CORE;
}

ProcessLimits own_limits(const std::vector<LimitName>& names) {
  ProcessLimits out;
  const mode_t mask = ::umask(022);
  ::umask(mask);
  out.umask = mask;
  for (const LimitName name : names) {
    rlimit own{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource_of(name)), &own) != 0) continue;
    SoftLimit& limit = out.soft.emplace_back(SoftLimit{name, {}});
    if (own.rlim_cur != RLIM_INFINITY) limit.value = own.rlim_cur;
  }
  return out;
}

}  // namespace gantry
