#include "cli/submit/submit.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "cli/columns/job_words.h"
#include "cli/table.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

template <class Message>
Result<proto::SubmitReply> submit(const std::string& program, const Message& message,
                                  std::optional<Session>& session) {
  constexpr long kPauses[] = {100, 300, 900};  // milliseconds between attempts
  for (const long& pause : kPauses) {
    auto opened = Session::open(program);
    if (!opened && &pause == kPauses) return tl::unexpected(opened.error());
    if (opened) {
      session.emplace(std::move(*opened));
      auto reply = session->call_once<proto::SubmitReply>(message);
      if (reply || !may_retry(reply.error().code)) return reply;
    }
    const timespec time{0, pause * 1'000'000};
    ::nanosleep(&time, nullptr);
  }
  ASSIGN(opened, Session::open(program));
  session.emplace(std::move(*opened));
  return session->call<proto::SubmitReply>(message);
}

}  // namespace

Result<proto::SubmitReply> submit_job(const std::string& program, const proto::SubmitJob& message,
                                      std::optional<Session>& session) {
  return submit(program, message, session);
}

Result<proto::SubmitReply> submit_job(const std::string& program,
                                      const proto::SubmitTogether& message,
                                      std::optional<Session>& session) {
  return submit(program, message, session);
}

// Waits with one WaitJobs request that stays open; in between it looks at the queue for progress.
namespace {

// Between two looks at the queue, if a person watches.
constexpr Duration kLook = milliseconds(500);
constexpr Duration kPlainLook = seconds(15);  // the same if nobody watches

class Progress {
 public:
  Progress(std::string program, JobId job, bool quiet)
      : program_(std::move(program)), job_(job), quiet_(quiet), live_(is_terminal(stderr)) {}

  [[nodiscard]] Duration interval() const { return live_ && !quiet_ ? kLook : kPlainLook; }
  [[nodiscard]] bool wanted() const { return !quiet_; }

  void show(const proto::ListJobsReply& reply) {
    if (quiet_ || reply.rows.empty()) return;
    std::string text = reply.rows.size() > 1 ? summary(reply) : one(reply.rows[0], reply.now);
    say(std::move(text));
  }
  void say(std::string text) {
    if (quiet_ || (!live_ && text == last_)) return;
    if (live_)
      fmt::print(stderr, "\r\033[K{}",
                 text.substr(0, static_cast<std::size_t>(terminal_width(stderr) - 1)));
    else
      fmt::print(stderr, "{}: {}\n", program_, text);
    std::fflush(stderr);
    last_ = std::move(text);
  }
  void end() const {
    if (live_ && !last_.empty()) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::string one(const proto::JobRow& row, Instant now) const {
    std::string text = fmt::format("job {} {}", shown_id(row), words_of(row).state);
    if (row.phase == Phase::queued) return text + fmt::format(" ({})", reason_of(row));
    if (!row.node_list.empty()) text += " on " + row.node_list;
    if (live_ && row.started)
      text += " for " + format_duration(row.ended.value_or(now) - *row.started);
    return text;
  }
  // The summary of an array: how many tasks are in which state.
  std::string summary(const proto::ListJobsReply& reply) const {
    std::map<std::string_view, std::size_t> counts;
    for (const proto::JobRow& row : reply.rows) {
      std::size_t n = 1;
      if (!row.array_tasks.empty())
        if (const auto tasks = parse_index_ranges(row.array_tasks))
          n = count_indexes(tasks->ranges);
      counts[words_of(row).state] += n;
    }
    std::string text = fmt::format("job {}:", job_.value());
    for (const auto& [state, n] : counts) text += fmt::format(" {} {}", n, state);
    return text;
  }

  std::string program_;
  JobId job_;
  bool quiet_;
  bool live_;
  std::string last_;
};

proto::ListJobs look_at(JobId job) {
  proto::ListJobs list;
  list.filter.jobs.push_back({job, {}});
  list.filter.states.emplace_back("all");
  return list;
}

// Waits for the reply, or for an error of the connection.
Result<proto::WaitReply> wait_on(Session& session, JobId job, Progress& progress) {
  proto::WaitJobs wait;
  wait.jobs.push_back({job, {}});
  ASSIGN(request, session.send(wait));
  while (true) {
    auto reply = session.receive<proto::WaitReply>(*request, progress.interval());
    if (reply || reply.error().code != ErrorCode::timed_out) return reply;
    ASSIGN(rows, session.call<proto::ListJobsReply>(look_at(job)));
    progress.show(*rows);
  }
}

}  // namespace

Result<int> wait_for_job(const std::string& program, Session session, JobId job, bool quiet) {
  Progress progress(program, job, quiet);
  std::optional<Session> current(std::move(session));
  while (true) {
    auto reply = wait_on(*current, job, progress);
    if (reply) {
      progress.end();
      int worst = 0;
      for (const proto::JobRow& row : reply->rows) worst = std::max(worst, exit_code(row));
      return worst;
    }
    if (!may_retry(reply.error().code)) {
      progress.end();
      return tl::unexpected(reply.error());
    }
    progress.say("the controller does not answer; still waiting");
    for (current.reset(); !current;) {
      const timespec pause{1, 0};
      ::nanosleep(&pause, nullptr);
      auto again = Session::open(program);
      if (again)
        current.emplace(std::move(*again));
      else if (!may_retry(again.error().code))
        return tl::unexpected(again.error());
    }
  }
}

namespace {

constexpr std::string_view kMarks[] = {"#SBATCH", "#GANTRY"};

bool is_directive(std::string_view line) {
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
    return line.starts_with(mark) && line.size() > mark.size() &&
           (line[mark.size()] == ' ' || line[mark.size()] == '\t');
  });
}

// "# SBATCH --mem=1G" and "#SBATCH--mem=1G": the mark with a blank inside, or without a blank after
// it.
bool is_nearly_directive(std::string_view line) {
  std::string_view rest = line.substr(1);
  const std::size_t word = rest.find_first_not_of(" \t");
  if (word == std::string_view::npos) return false;
  rest.remove_prefix(word);
  for (std::string_view mark : kMarks) {
    const std::string_view name = mark.substr(1);
    if (!rest.starts_with(name) || rest.size() == name.size()) continue;
    const std::size_t option = rest.find_first_not_of(" \t", name.size());
    if (option == std::string_view::npos || rest[option] != '-') continue;  // a comment about it
    if (word > 0 || option == name.size()) return true;
  }
  return false;
}

// The word that ends the here-document that begins in this line; "" = none begins.
std::string here_document(std::string_view line) {
  std::size_t at = line.find("<<");
  if (at == std::string_view::npos || line.substr(at).starts_with("<<<")) return {};
  at = line.find_first_not_of("-\"'\\ \t", at + 2);
  if (at == std::string_view::npos) return {};
  return std::string(line.substr(at, line.find_first_of("\"' \t|>&;)", at) - at));
}

std::string_view trimmed(std::string_view line) {
  const std::size_t from = line.find_first_not_of(" \t\r");
  return from == std::string_view::npos ? std::string_view() : line.substr(from);
}

bool is_missing(const std::string& folder) {
  struct stat found {};
  return ::stat(folder.c_str(), &found) != 0 ? errno == ENOENT || errno == ENOTDIR
                                             : !S_ISDIR(found.st_mode);
}

// The folder of an output file; "" if the pattern decides it later.
std::string folder_of(const std::string& pattern, const std::string& work_dir) {
  const std::size_t slash = pattern.rfind('/');
  if (slash == std::string::npos) return {};
  std::string folder = pattern.substr(0, std::max<std::size_t>(slash, 1));
  if (folder.find_first_of("%\\") != std::string::npos) return {};
  return folder.front() == '/' ? folder : work_dir + "/" + folder;
}

}  // namespace

std::vector<std::string> script_warnings(std::string_view script, std::string_view name) {
  std::vector<std::string> out;
  std::string document;  // the end word of the present here-document
  bool commands = false;
  std::size_t late = 0;
  int number = 0, first_late = 0;
  while (!script.empty()) {
    const std::size_t end = std::min(script.find('\n'), script.size());
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    ++number;
    const std::string_view text = trimmed(line);
    if (!document.empty()) {
      if (text == document) document.clear();
      continue;
    }
    if (text.empty()) continue;
    if (text.front() != '#') {
      commands = true;
      document = here_document(text);
    } else if (commands && is_directive(text)) {
      if (late++ == 0) first_late = number;
    } else if (!commands && is_nearly_directive(text)) {
      out.push_back(fmt::format(
          "{}:{} is ignored: a directive is written \"{} ...\", with a blank behind it and none "
          "inside",
          name, number, text.find("SBATCH") != std::string_view::npos ? kMarks[0] : kMarks[1]));
    }
  }
  if (late > 0)
    out.push_back(
        fmt::format("{}:{} is ignored{}: directives end at the first command of the script", name,
                    first_late, late > 1 ? fmt::format(", with {} more behind it", late - 1) : ""));
  return out;
}

std::vector<std::string> folder_warnings(const JobSpec& spec) {
  std::vector<std::string> out;
  constexpr std::string_view kFails = "does not exist here; the job fails unless its node has it";
  if (is_missing(spec.work_dir)) {
    out.push_back(fmt::format("the working directory {} {}", spec.work_dir, kFails));
    return out;
  }
  std::string told;
  for (const auto& [option, pattern] :
       {std::pair<std::string_view, const std::string&>{"--output", spec.std_out},
        {"--error", spec.std_err}}) {
    const std::string folder = folder_of(pattern, spec.work_dir);
    if (folder.empty() || folder == told || !is_missing(folder)) continue;
    out.push_back(fmt::format("the folder {} of {} {}", folder, option, kFails));
    told = folder;
  }
  return out;
}

void print_warnings(std::string_view program, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    fmt::print(stderr, "{}: warning: {}\n", program, warning);
}

}  // namespace gantry::cli
