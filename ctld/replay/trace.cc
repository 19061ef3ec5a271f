#include "ctld/replay/trace.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>

#include "common/text/text.h"
#include "config/nearest.h"
#include "config/values.h"
#include "ctld/replay/vary.h"

extern char** environ;

namespace gantry::replay {
namespace {

constexpr std::size_t kMaxTraceBytes = std::size_t{1} << 30;

Result<std::string> drain(int fd, const std::string& path) {
  std::string text;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
    if (n == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxTraceBytes)
      return fail(ErrorCode::limit_exceeded, fmt::format("{}: more than 1 GiB of text", path));
  }
}

Result<std::string> unpack(const std::string& path) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::array<std::string, 4> words{"gzip", "-dc", "--", path};
  std::array<char*, 5> argv{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                            nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, "gzip", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return fail(ErrorCode::io_error,
                fmt::format("{}: cannot start gzip: {}", path, std::strerror(failed)));
  }
  auto text = drain(ends[0], path);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (text && status != 0)
    return fail(ErrorCode::malformed, fmt::format("{}: gzip cannot unpack it", path));
  return text;
}

// The first bytes of a compressed file, which is not text.
struct Packed {
  std::string_view magic, what;
};
constexpr std::string_view kGzip{"\x1f\x8b"};
constexpr Packed kPacked[] = {{kGzip, "gzip"},
                              {"BZh", "bzip2"},
                              {"\xfd"
                               "7zXZ",
                               "xz"},
                              {"\x28\xb5\x2f\xfd", "zstd"},
                              {"PK\x03\x04", "zip"}};

Result<void> check_unpacked(std::string_view text, const std::string& path) {
  for (const Packed& p : kPacked)
    if (text.starts_with(p.magic))
      return fail(ErrorCode::malformed,
                  fmt::format("{}: is packed by {}; a trace is plain text, or a file that gzip has "
                              "packed",
                              path, p.what));
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

TraceFormat format_of(const std::string& path) {
  std::string name = lower(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (path == "-" || name.ends_with(".json") || name.ends_with(".jsonl")) return TraceFormat::json;
  if (name.ends_with(".swf")) return TraceFormat::swf;
  return name.ends_with(".csv") ? TraceFormat::csv : TraceFormat::by_name;
}

template <class T>
Result<T> number(std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= low) ||
      !(value <= high) || (std::is_integral_v<T> && value != std::floor(value)))
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("must be {} of {} to {:.0f}, not \"{}\"",
                    std::is_integral_v<T> ? "a whole number" : "a number", low, high, text));
  return static_cast<T>(value);
}

// Reads a duration: seconds, or "36h", "1-12:00:00".
Result<Duration> length(std::string_view text) {
  if (text.find_first_not_of("0123456789.") == std::string_view::npos) {
    ASSIGN(s, number<double>(text, 0, kMostSeconds));
    return Duration{std::llround(*s * 1e6)};
  }
  return config::parse_length(text);
}

// Reads what may follow the seconds of a date and time: a fraction of a second, and the offset from
// UTC; without an offset it is UTC.
std::optional<Duration> behind_seconds(std::string_view rest) {
  Duration more{};
  if (rest.starts_with('.')) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    double part = 0;
    if (std::from_chars(rest.data(), rest.data() + end, part).ec != std::errc{})
      return std::nullopt;
    more = Duration{std::llround(part * 1e6)};
    rest.remove_prefix(end);
  }
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.empty() || rest == "Z" || rest == "UTC" || rest == "GMT") return more;
  // +HH:MM, +HHMM or +HH
  if (rest.front() != '+' && rest.front() != '-') return std::nullopt;
  std::string digits(rest.substr(1));
  std::erase(digits, ':');
  if (digits.size() == 2) digits += "00";
  if (digits.size() != 4 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const int east =
      (digits[0] - '0') * 600 + (digits[1] - '0') * 60 + (digits[2] - '0') * 10 + (digits[3] - '0');
  return rest.front() == '+' ? more - minutes(east) : more + minutes(east);
}

// Reads seconds from the trace's beginning (or since 1970), "6h", or a date and time "2017-10-09
// 07:01:55".
Result<Instant> moment(std::string_view text) {
  if (text.size() >= 19 && text[4] == '-' && text[7] == '-' &&
      (text[10] == ' ' || text[10] == 'T')) {
    ::tm tm{};
    const std::string copy(text.substr(0, 19));
    const char* rest =
        ::strptime(copy.c_str(), text[10] == 'T' ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
    const auto more = behind_seconds(text.substr(19));
    if (rest != nullptr && *rest == '\0' && more)
      return Instant{::timegm(&tm) * 1'000'000 + more->us};
  }
  const auto since = length(text);
  if (!since)
    return fail(ErrorCode::invalid_argument,
                fmt::format("must be seconds, a length such as 6h, or YYYY-MM-DD HH:MM:SS with Z "
                            "or +HH:MM behind it, not \"{}\"",
                            text));
  return Instant{since->us};
}

template <class T, T TraceJob::*Member>
Result<void> whole(TraceJob& job, std::string_view text) {
  ASSIGN(n, number<T>(text, 0, 1e7));
  job.*Member = *n;
  return {};
}
template <std::string TraceJob::*Member>
Result<void> word(TraceJob& job, std::string_view text) {
  job.*Member = text;
  return {};
}
template <auto Member>
Result<void> span(TraceJob& job, std::string_view text) {
  ASSIGN(d, length(text));
  job.*Member = *d;
  return {};
}

Result<void> set_submit(TraceJob& job, std::string_view text) {
  ASSIGN(at, moment(text));
  job.submit = *at;
  return {};
}
template <std::optional<Instant> TraceJob::*Member>
Result<void> set_moment(TraceJob& job, std::string_view text) {
  ASSIGN(at, moment(text));
  job.*Member = *at;
  if (job.began && job.ended) job.run = *job.ended - *job.began;
  return {};
}
Result<void> set_limit(TraceJob& job, std::string_view text) {
  job.unlimited = text == "unlimited";
  return job.unlimited ? Result<void>{} : span<&TraceJob::limit>(job, text);
}
Result<void> set_memory(TraceJob& job, std::string_view text) {
  ASSIGN(bytes, parse_memory(text));
  job.memory = *bytes;
  return {};
}
Result<void> set_id(TraceJob& job, std::string_view text) {
  ASSIGN(n, number<std::uint64_t>(text, 0, 9e15));
  job.id = *n;
  return {};
}
struct FieldRow {
  std::string_view name;
  Result<void> (*set)(TraceJob&, std::string_view);
};
constexpr FieldRow kFields[] = {
    {"id", set_id},
    {"submit", set_submit},
    {"run", span<&TraceJob::run>},
    {"limit", set_limit},
    {"gpus", whole<std::uint32_t, &TraceJob::gpus>},
    {"cpus", whole<std::uint32_t, &TraceJob::cpus>},
    {"nodes", whole<std::uint32_t, &TraceJob::nodes>},
    {"memory", set_memory},
    {"tenant", word<&TraceJob::tenant>},
    {"project", word<&TraceJob::project>},
    {"user", word<&TraceJob::user>},
    {"class", word<&TraceJob::priority_class>},
    {"checkpoint", span<&TraceJob::checkpoint>},
    {"due", span<&TraceJob::due>},
    {"app", word<&TraceJob::app>},
    {"max_per_node", whole<std::uint32_t, &TraceJob::max_per_node>},
    {"began", set_moment<&TraceJob::began>},
    {"ended", set_moment<&TraceJob::ended>},
};

// Names of columns in public traces: Philly's, as its authors published it, Helios's, Acme's, and
// Alibaba's trace of recommendation models (DLRM, 2025).
struct Alias {
  std::string_view name, field;  // field "": the column is not used
};
constexpr Alias kAliases[] = {
    {"timestamp", "submit"},
    {"submit_time", "submit"},
    {"duration", "run"},
    {"run_time", "run"},
    {"runtime", "run"},
    {"time_limit", "limit"},
    {"walltime", "limit"},
    {"num_gpus", "gpus"},
    {"gpu_num", "gpus"},
    {"num_cpus", "cpus"},
    {"cpu_num", "cpus"},
    {"num_nodes", "nodes"},
    {"node_num", "nodes"},
    {"cluster", "tenant"},
    {"vc", "tenant"},
    {"job_id", "id"},
    {"jobid", "id"},
    {"gpu_time", ""},
    {"start_time", ""},
    {"end_time", ""},
    {"queue", ""},
    {"state", ""},
    {"status", ""},
    {"jobname", ""},
    {"name", ""},
    {"type", ""},
    {"instance_sn", ""},
    {"role", ""},
    {"app_name", "app"},
    {"max_instance_per_node", "max_per_node"},
    {"cpu_request", "cpus"},
    {"gpu_request", "gpus"},
    {"creation_time", "submit"},
    {"scheduled_time", "began"},
    {"deletion_time", "ended"},
    {"cpu_limit", ""},
    {"gpu_limit", ""},
    {"rdma_request", ""},
    {"rdma_limit", ""},
    {"memory_request", ""},
    {"memory_limit", ""},
    {"disk_request", ""},
    {"disk_limit", ""},
    {"", ""},  // for a comma at the end of the header
};

const FieldRow* row_of(std::string_view field) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields),
                                   [&](const FieldRow& f) { return f.name == field; });
  return found == std::end(kFields) ? nullptr : found;
}

}  // namespace

std::optional<std::string_view> field_of(std::string_view name) {
  const std::string bare = lower(name);
  if (const FieldRow* row = row_of(bare)) return row->name;
  for (const Alias& alias : kAliases)
    if (alias.name == bare) return alias.field;
  return std::nullopt;
}

std::string no_such_field(std::string_view name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const FieldRow& f : kFields) {
    names.push_back(f.name);
    list += (list.empty() ? "" : ", ") + std::string(f.name);
  }
  return fmt::format("no such column{}; there are {}", did_you_mean(lower(name), names), list);
}

bool is_missing(std::string_view text) {
  constexpr std::string_view kWords[] = {"", "-", "-1", "na", "n/a", "nan", "none", "null", "\\n"};
  return std::find(std::begin(kWords), std::end(kWords), lower(text)) != std::end(kWords);
}

Result<void> set_field(TraceJob& job, std::string_view field, std::string_view text) {
  return is_missing(text) ? Result<void>{} : row_of(field)->set(job, text);
}

tl::unexpected<Error> wrong_line(const std::string& name, std::int64_t line, std::string_view field,
                                 std::string_view what) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("{}:{}: {}{}{}", name, line, field, field.empty() ? "" : ": ", what));
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return drain(STDIN_FILENO, "standard input");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::not_found, fmt::format("{}: {}", path, std::strerror(errno)));
  // The format is recognised by its first bytes and not by its name, because browsers often unpack
  // a file.gz while they download it.
  std::array<char, 2> begin{};
  const bool packed = ::pread(fd, begin.data(), begin.size(), 0) == 2 &&
                      std::string_view(begin.data(), begin.size()) == kGzip;
  auto text = packed ? unpack(path) : drain(fd, path);
  ::close(fd);
  return text;
}

namespace {

constexpr std::string_view kMark{"\xef\xbb\xbf"};  // UTF-8's byte order mark

template <class Which>
void leave_out(Trace& trace, Which which, std::string_view why) {
  const auto first = std::find_if(trace.jobs.begin(), trace.jobs.end(), which);
  if (first == trace.jobs.end()) return;
  const std::int64_t line = first->line;
  const std::size_t count = std::erase_if(trace.jobs, which);
  trace.notes.push_back(fmt::format("{} jobs that {} were left out; the first is {}:{}", count, why,
                                    trace.name, line));
}

}  // namespace

Result<Trace> parse_trace(const std::string& text, const std::string& name, TraceFormat format,
                          const TraceOptions& options) {
  TRY(check_unpacked(text, name));
  const std::string_view all = std::string_view(text).substr(text.starts_with(kMark) ? 3 : 0);
  Result<Trace> trace = format == TraceFormat::swf   ? parse_swf(all, name, options.tenant)
                        : format == TraceFormat::csv ? parse_csv(all, name)
                                                     : parse_json(all, name);
  if (!trace) return trace;
  leave_out(
      *trace, [](const TraceJob& j) { return j.run.us <= 0; }, "never ran");
  leave_out(
      *trace, [](const TraceJob& j) { return j.gpus == 0 && j.cpus == 0 && j.processors == 0; },
      "ask for neither GPUs nor cores");
  if (trace->jobs.empty())
    return fail(ErrorCode::invalid_argument, fmt::format("{}: no job in it that ran", name));
  std::size_t cut = 0;
  for (const TraceJob& j : trace->jobs) cut += j.limit && j.run > *j.limit ? 1 : 0;
  if (cut > 0)
    trace->notes.push_back(
        fmt::format("{} jobs ran longer than their limit and are cut off there", cut));
  std::stable_sort(trace->jobs.begin(), trace->jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
  return trace;
}

Result<Trace> read_trace(const std::string& path, const TraceOptions& options) {
  const TraceFormat format =
      options.format == TraceFormat::by_name ? format_of(path) : options.format;
  if (format == TraceFormat::by_name)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: a trace's name ends in .swf, .csv or .json (and .gz), or --format "
                            "says what it is",
                            path));
  ASSIGN(text, read_text(path));
  return parse_trace(*text, path == "-" ? "standard input" : path, format, options);
}

void draw_limits(Trace& trace, double factor) {
  constexpr std::array<std::int64_t, 8> kSteps{300, 900, 1800, 3600, 7200, 14400, 28800, 86400};
  for (TraceJob& job : trace.jobs) {
    if (job.limit || job.unlimited) continue;
    const double u = static_cast<double>(scrambled(job.id) >> 11) * 0x1p-53;
    const auto asked = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(job.run.us) / 1e6 * (1 + factor * u)));
    const auto* step = std::lower_bound(kSteps.begin(), kSteps.end(), asked);
    job.limit = seconds(step != kSteps.end() ? *step : (asked + 86'399) / 86'400 * 86'400);
  }
}

}  // namespace gantry::replay
