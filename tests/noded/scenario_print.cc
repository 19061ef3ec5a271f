#include "tests/noded/scenario_print.h"

#include <stdexcept>

#include "common/overloaded.h"
#include "common/text/text.h"

namespace gantry::test {

namespace {
std::string show_length(Duration d) {
  if (d.us % 1'000'000 == 0) return fmt::format("{}s", d.us / 1'000'000);
  return fmt::format("{}ms", d.us / 1000);
}
std::string show_highest(JobId job) {
  return job == JobId{} ? "" : fmt::format(" job={}", job.value());
}
}  // namespace

node::AttemptKey parse_key(const std::string& text) {
  const auto dot = text.find('.');
  if (dot == std::string::npos) throw std::runtime_error("not a key: " + text);
  return {JobId{std::stoull(text)},
          Attempt{static_cast<std::uint32_t>(std::stoul(text.substr(dot + 1)))}};
}

Duration parse_length(const std::string& text) {
  std::size_t used = 0;
  const auto n = std::stoll(text, &used);
  const std::string unit = text.substr(used);
  if (unit == "ms") return milliseconds(n);
  if (unit == "s") return seconds(n);
  if (unit == "m") return minutes(n);
  throw std::runtime_error("not a length of time: " + text);
}

std::string show(const node::AttemptKey& key) {
  return fmt::format("{}.{}", key.job.value(), key.attempt.value());
}

std::string format_at(Instant t) {
  const auto us = (t - kScenarioStart).us;
  return us % 1'000'000 == 0 ? fmt::format("{}s", us / 1'000'000)
                             : fmt::format("{:.3f}s", static_cast<double>(us) / 1e6);
}

std::string show(const node::Action& action) {
  using namespace node;
  return std::visit(
      Overloaded{
          [](const RememberEpoch& a) {
            return fmt::format("RememberEpoch {}{}", a.epoch.value(),
                               a.fence_after ? " fence=" + show_length(*a.fence_after) : "");
          },
          [](const RememberJob& a) { return fmt::format("RememberJob {}", a.highest.value()); },
          [](const RememberContact& a) { return "RememberContact " + format_at(a.at); },
          [](const Begin& a) {
            return fmt::format("Begin {}{}{}", show(a.launch.key), a.launch.hold ? " hold" : "",
                               a.launch.runs_batch ? "" : " holder");
          },
          [](const Resume& a) { return "Resume " + show(a.key); },
          [](const Release& a) { return "Release " + show(a.key); },
          [](const Signal& a) {
            return fmt::format("Signal {} {} {}{}", show(a.key), signal_name(a.signal),
                               enum_name(a.scope),
                               a.step ? fmt::format(" of step {}", a.step->value()) : "");
          },
          [](const Kill& a) { return "Kill " + show(a.key); },
          [](const Notice& a) { return fmt::format("Notice {} \"{}\"", show(a.key), a.text); },
          [](const RepairGpu& a) { return "RepairGpu " + a.uuid; },
          [](const Forget& a) { return "Forget " + show(a.key); },
          [](const SetStepLimit& a) {
            return fmt::format("Limit {} step {} to {} s", show(a.key), a.step.value(),
                               a.time_limit.us / 1'000'000);
          },
          [](const SetFrozen& a) {
            return fmt::format("{} {}", a.frozen ? "Freeze" : "Thaw", show(a.key));
          },
          [](const ReadFile& a) { return "ReadFile " + a.fetch.path; },
          [](const ProbeNetwork& a) { return "ProbeNetwork " + a.probe.target; },
          [](const WriteTokens& a) { return "WriteTokens " + show(a.tokens.key); },
      },
      action);
}

std::string show(const node::Report& message) {
  return std::visit(
      Overloaded{
          [](const proto::NodeRegister& m) {
            std::string out = fmt::format("NodeRegister sent={} epoch={}{}", format_at(m.sent),
                                          m.highest_epoch.value(), show_highest(m.highest_job));
            for (const auto& a : m.attempts)
              out += fmt::format(" {}:{}", show(a.key), enum_name(a.phase));
            return out;
          },
          [](const proto::Heartbeat& m) {
            return fmt::format("Heartbeat session={} sent={}", m.session, format_at(m.sent));
          },
          [](const proto::LaunchReady& m) { return "LaunchReady " + show(m.key); },
          [](const proto::Frozen& m) {
            return fmt::format("Frozen {} {}", show(m.key), m.frozen ? "yes" : "no");
          },
          [](const proto::Started& m) {
            return fmt::format("Started {} at={}", show(m.key), format_at(m.at));
          },
          [](const proto::ExitReport& m) {
            return fmt::format("ExitReport {} {} {}:{}{}{}", show(m.key), enum_name(m.cause),
                               m.exit.code, m.exit.signal, m.started ? "" : " never started",
                               m.message.empty() ? "" : " \"" + m.message + "\"");
          },
          [](const proto::Goodbye& m) { return fmt::format("Goodbye session={}", m.session); },
          [](const proto::GpuReport& m) {
            return fmt::format("GpuReport of {} GPUs", m.gpus.gpus.size());
          },
          [](const proto::FetchLogReply& m) {
            return fmt::format("FetchLogReply {} \"{}\"", m.ticket, m.error);
          },
          [](const proto::AttemptProbed& m) {
            return fmt::format("AttemptProbed {} \"{}\"", m.ticket, m.error);
          },
          [](const proto::RenewIdentity& m) { return "RenewIdentity " + show(m.key); },
      },
      message);
}

}  // namespace gantry::test
