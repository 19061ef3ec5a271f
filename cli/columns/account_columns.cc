// sacct's fields. An empty value stays empty, as in sacct.
#include "cli/columns/account_columns.h"

#include <fmt/core.h>

#include "cli/columns/job_words.h"
#include "common/text/text.h"

namespace gantry::cli {

namespace sacct_cells {
namespace {

using O = std::string&;
using V = const AccountView&;

const proto::JobRow& row(V v) {
  return v.job->row;
}

std::optional<Instant> started(V v) {
  return v.step != nullptr ? v.step->started : row(v).started;
}
std::optional<Instant> ended(V v) {
  return v.step != nullptr ? v.step->ended : row(v).ended;
}

Duration elapsed(V v) {
  const auto begin = started(v);
  if (!begin) return {};
  const Duration stopped = v.step == nullptr ? row(v).suspended : Duration{};
  return std::max(ended(v).value_or(v.now) - *begin - stopped, Duration{});
}

// The time from submit to the newest start. If the job has not started, it lasts until now or until
// the job's end.
Duration waited(V v) {
  return row(v).started.value_or(row(v).ended.value_or(v.now)) - row(v).submitted;
}

std::uint32_t cpus(V v) {
  return cores_held(*v.job, v.step);
}

const Usage& usage(V v) {
  return usage_of(*v.job, v.step);
}

JobWords state(V v) {
  if (v.step == nullptr) return words_of(row(v));
  return v.step->running ? words_of(Phase::running, std::nullopt)
                         : words_of(Phase::ended, v.step->outcome);
}

void state_text(O o, V v) {
  o += state(v).state;
  if (v.step == nullptr) o += canceller_of(*v.job);
}

void bytes(O o, V v, std::int64_t n) {
  if (v.bytes)
    o += std::to_string(n);
  else
    o += n == 0 ? "0" : fmt::format("{}K", (n + 1023) / 1024);
}

void time_or(O o, const std::optional<Instant>& t, std::string_view none) {
  o += t ? format_time(*t) : std::string(none);
}

Colour colour(V v) {
  const std::string_view word = state(v).compact;
  if (word == "CD") return Colour::none;
  if (word == "R" || word == "CG" || word == "CF") return Colour::green;
  return word == "PD" ? Colour::yellow : Colour::red;
}

// Writes a value that only the line of the job itself has.
void of_job(O o, V v, const std::string& text) {
  if (v.step == nullptr) o += text;
}

// ---- use of GPUs in an attempt that is over, as the job's node has measured it

const std::vector<GpuUsage>& gpus(V v) {
  return v.job->usage.gpus;
}

bool tells_gpus(V v) {
  return v.step == nullptr && !gpus(v).empty();
}

// At most 100 %: CPUs that are counted several times (gantry up --oversubscribe), and the rounding
// of times, would give more.
void percent(O o, double part, double whole) {
  if (whole > 0) o += fmt::format("{:.1f}%", std::min(100.0, 100 * part / whole));
}

// The mean over all samples that had a value.
void gpu_efficiency(O o, V v) {
  double busy = 0, looks = 0;
  if (!tells_gpus(v)) return;
  for (const GpuUsage& gpu : gpus(v)) {
    busy += static_cast<double>(gpu.busy_permille) * static_cast<double>(gpu.busy_samples) / 1000;
    looks += static_cast<double>(gpu.busy_samples);
  }
  percent(o, busy, looks);
}

// The GPU with the highest peak of memory.
const GpuUsage* fullest(V v) {
  const GpuUsage* out = nullptr;
  if (!tells_gpus(v)) return out;
  for (const GpuUsage& gpu : gpus(v))
    if (out == nullptr || gpu.memory_peak_mib > out->memory_peak_mib) out = &gpu;
  return out;
}

double joules(V v) {
  double out = 0;
  for (const GpuUsage& gpu : gpus(v)) out += static_cast<double>(gpu.energy_j);
  return out;
}

// The idle time at the end of the job, for the GPU with the longest one.
void gpu_idle(O o, V v) {
  std::optional<Duration> most;
  if (!tells_gpus(v) || !ended(v)) return;
  for (const GpuUsage& gpu : gpus(v)) {
    const auto& last = gpu.busy_samples > 0 ? gpu.last_busy : gpu.last_process;
    const Duration idle = std::max(Duration{}, *ended(v) - last.value_or(gpu.start));
    if (gpu.samples > 0 && (!most || idle > *most)) most = idle;
  }
  if (most) o += format_duration_long(*most);
}

void gpu_scrubs(O o, V v) {
  if (!tells_gpus(v)) return;
  std::string words;
  for (const GpuUsage& gpu : gpus(v))
    words += fmt::format("{}{}", words.empty() ? "" : ",", enum_name(gpu.scrub));
  o += words;
}

consteval Column<AccountView> same(std::string_view name) {
  return account_value<AccountView>(name);
}

constexpr Column<AccountView> kColumns[] = {
    same("JobID"),
    same("JobIDRaw"),
    same("JobName"),
    coloured(sized("State", 10, state_text), colour),
    sized("ExitCode", 8,
          [](O o, V v) { o += exit_text(v.step != nullptr ? v.step->exit : row(v).exit); }),
    same("Account"),
    same("AllocCPUS"),
    same("NCPUS"),
    same("ReqCPUS"),
    sized("AllocGPUS", 9,
          [](O o, V v) {
            const bool held = row(v).started || !row(v).node_list.empty();
            of_job(o, v, held ? gpus_text(row(v)) : "0");
          }),
    sized("ReqGPUS", 8, [](O o, V v) { of_job(o, v, gpus_text(row(v))); }),
    sized("NNodes", 8, [](O o, V v) { o += std::to_string(row(v).nodes); }),
    same("NTasks"),
    sized("AllocTRES", 10,
          [](O o, V v) {
            if (v.step == nullptr && cpus(v) > 0)
              o += fmt::format("cpu={},mem={},node={}{}", cpus(v),
                               format_memory(v.job->alloc_memory), row(v).nodes,
                               has_gpus(row(v)) ? ",gres/gpu=" + gpus_text(row(v)) : "");
          }),
    sized("ReqMem", 10,
          [](O o, V v) {
            const std::int64_t n = row(v).memory_per_node;
            if (v.step == nullptr && n != 0) o += format_memory(n);
          }),
    sized("MaxRSS", 10,
          [](O o, V v) {
            if (started(v)) bytes(o, v, usage(v).memory_peak_bytes);
          }),
    sized("MaxDiskRead", 12,
          [](O o, V v) {
            if (started(v)) bytes(o, v, usage(v).io_read_bytes);
          }),
    sized("MaxDiskWrite", 12,
          [](O o, V v) {
            if (started(v)) bytes(o, v, usage(v).io_write_bytes);
          }),
    same("TotalCPU"),
    same("UserCPU"),
    same("SystemCPU"),
    sized("CPUTime", 10, [](O o, V v) { o += format_duration_long(elapsed(v) * cpus(v)); }),
    sized("CPUTimeRAW", 10, [](O o, V v) { o += std::to_string(elapsed(v).seconds() * cpus(v)); }),
    sized("Elapsed", 10, [](O o, V v) { o += format_duration_long(elapsed(v)); }),
    sized("ElapsedRaw", 10, [](O o, V v) { o += std::to_string(elapsed(v).seconds()); }),
    same("Timelimit"),
    same("TimelimitRaw"),
    sized(
        "Submit", 19,
        [](O o, V v) { o += format_time(v.step != nullptr ? v.step->started : row(v).submitted); }),
    sized("Eligible", 19,
          [](O o, V v) {
            const auto t =
                v.step != nullptr ? std::optional(v.step->started) : eligible_since(row(v));
            o += t ? format_time(*t) : "Unknown";
          }),
    sized("Start", 19,
          [](O o, V v) {
            time_or(o, started(v), row(v).phase == Phase::ended ? "None" : "Unknown");
          }),
    sized("End", 19, [](O o, V v) { time_or(o, ended(v), "Unknown"); }),
    sized("NodeList", 15,
          [](O o, V v) {
            const std::string& list = v.step != nullptr ? v.step->node_list : row(v).node_list;
            o += list.empty() ? "None assigned" : list;
          }),
    same("Partition"),
    same("Priority"),
    sized("Reservation", 15, put_of_row<AccountView, &JobRow::reservation>),
    sized("Waited", 11, [](O o, V v) { of_job(o, v, format_duration_long(waited(v))); }),
    sized("WaitedFor", 40,
          [](O o, V v) {
            std::string parts;
            for (const WaitPart& part : v.job->waits)
              parts += fmt::format("{}{}={}", parts.empty() ? "" : ",", enum_name(part.reason),
                                   format_duration(part.length));
            of_job(o, v, parts);
          }),
    same("Restarts"),
    same("Reason"),
    sized("Cause", 40, [](O o, V v) { of_job(o, v, v.job->cause); }),
    same("User"),
    same("UID"),
    sized("Group", 9, [](O o, V v) { of_job(o, v, v.job->group); }),
    same("Comment"),
    sized("Labels", 20, [](O o, V v) { of_job(o, v, labels_text(v.job->labels)); }),
    sized("Type", 11,
          [](O o, V v) {
            of_job(o, v, v.job->work_type ? std::string(enum_name(*v.job->work_type)) : "");
          }),
    sized("Sandbox", 8,
          [](O o, V v) {
            of_job(o, v, std::string(enum_name(v.job->sandbox.value_or(Sandbox::standard))));
          }),
    sized("Cost", 12,
          [](O o, V v) { of_job(o, v, row(v).cost ? format_money(*row(v).cost, 4) : ""); }),
    sized("Credit", 12,
          [](O o, V v) { of_job(o, v, row(v).cost ? format_money(row(v).credit, 4) : ""); }),
    sized("CPUEff", 7,
          [](O o, V v) {
            percent(o, static_cast<double>(usage(v).cpu_user_us + usage(v).cpu_system_us),
                    static_cast<double>(elapsed(v).us) * cpus(v));
          }),
    sized("MemEff", 7,
          [](O o, V v) {
            percent(o, static_cast<double>(usage(v).memory_peak_bytes),
                    static_cast<double>(row(v).memory_per_node));
          }),
    sized("GPUEff", 7, gpu_efficiency),
    sized("GPUMem", 8,
          [](O o, V v) {
            if (const GpuUsage* gpu = fullest(v)) o += fmt::format("{}M", gpu->memory_peak_mib);
          }),
    sized("GPUMemEff", 9,
          [](O o, V v) {
            if (const GpuUsage* gpu = fullest(v)) percent(o, gpu->memory_peak_mib, gpu->memory_mib);
          }),
    sized("GPUPower", 8,
          [](O o, V v) {
            if (tells_gpus(v) && elapsed(v).seconds() > 0)
              o += fmt::format("{:.0f}W", joules(v) / static_cast<double>(elapsed(v).seconds()));
          }),
    sized("GPUEnergy", 10,
          [](O o, V v) {
            if (tells_gpus(v)) o += fmt::format("{:.2f}Wh", joules(v) / 3600);
          }),
    sized("GPUIdle", 11, gpu_idle),
    sized("GPUScrub", 12, gpu_scrubs),
    same("SubmitLine"),
    same("WorkDir"),
};

}  // namespace
}  // namespace sacct_cells

std::span<const Column<AccountView>> account_columns() {
  return sacct_cells::kColumns;
}

const Usage& usage_of(const HistoryRow& job, const StepRow* step) {
  return step != nullptr ? step->usage : job.usage;
}
std::uint32_t cores_held(const HistoryRow& job, const StepRow* step) {
  if (step != nullptr) return step->cpus;
  return job.row.started || !job.row.node_list.empty() ? job.row.cpus : 0;
}
std::string cpu_time(std::int64_t us) {
  const std::int64_t total = us / 1'000'000;
  const std::int64_t days = total / 86'400;
  const std::int64_t hours = total / 3'600 % 24;
  if (days > 0)
    return fmt::format("{}-{:02}:{:02}:{:02}", days, hours, total / 60 % 60, total % 60);
  if (hours > 0) return fmt::format("{:02}:{:02}:{:02}", hours, total / 60 % 60, total % 60);
  return fmt::format("{:02}:{:02}.{:03}", total / 60, total % 60, us / 1'000 % 1'000);
}
std::string canceller_of(const HistoryRow& job) {
  // The job's cause names who cancelled it: "cancelled by alice (uid 1000)".
  constexpr std::string_view kUid = "(uid ";
  const std::size_t at = job.cause.find(kUid);
  if (job.row.phase != Phase::ended || job.row.outcome != Outcome::cancelled ||
      !job.cause.starts_with("cancelled by ") || at == std::string::npos)
    return "";
  const std::size_t digits = at + kUid.size();
  return " by " + job.cause.substr(digits, job.cause.find(')', digits) - digits);
}

std::string account_of(const HistoryRow& job, const StepRow*) {
  return job.row.account;
}
std::string cores_held_text(const HistoryRow& job, const StepRow* step) {
  return std::to_string(cores_held(job, step));
}
std::string cores_asked(const HistoryRow& job, const StepRow* step) {
  return std::to_string(step != nullptr ? step->cpus : job.row.cpus);
}
std::string line_id(const HistoryRow& job, const StepRow* step) {
  return shown_id(job.row) + (step != nullptr ? "." + step->step : "");
}
std::string raw_line_id(const HistoryRow& job, const StepRow* step) {
  return std::to_string(job.row.job.value()) + (step != nullptr ? "." + step->step : "");
}
std::string line_name(const HistoryRow& job, const StepRow* step) {
  return step != nullptr ? step->name : job.row.name;
}
std::string task_number(const HistoryRow&, const StepRow* step) {
  return step != nullptr ? std::to_string(step->tasks) : "";
}
std::string total_cpu(const HistoryRow& job, const StepRow* step) {
  const Usage& usage = usage_of(job, step);
  return cpu_time(usage.cpu_user_us + usage.cpu_system_us);
}
std::string user_cpu(const HistoryRow& job, const StepRow* step) {
  return cpu_time(usage_of(job, step).cpu_user_us);
}
std::string system_cpu(const HistoryRow& job, const StepRow* step) {
  return cpu_time(usage_of(job, step).cpu_system_us);
}

std::string reason_of_line(const HistoryRow& job) {
  return reason_of(job.row);
}
std::string limit_of(const HistoryRow& job) {
  return job.row.time_limit ? format_duration_long(*job.row.time_limit) : "UNLIMITED";
}
std::string limit_in_minutes(const HistoryRow& job) {
  return job.row.time_limit ? std::to_string(job.row.time_limit->seconds() / 60) : "UNLIMITED";
}
std::string uid_of(const HistoryRow& job) {
  return std::to_string(job.row.uid.value());
}

}  // namespace gantry::cli
