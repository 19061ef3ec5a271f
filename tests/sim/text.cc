// See text.h.
#include "tests/sim/text.h"

#include <fmt/core.h>

#include "common/text/text.h"

#include "common/assert.h"
#include "common/proto/any/message_visit.h"
#include "common/proto/job_text.h"
#include "ctld/core/request.h"

namespace gantry::sim {
namespace {

using namespace proto;

std::string key_text(const AttemptKey& key) {
  return fmt::format("{}.{}", key.job.value(), key.attempt.value());
}

std::string stamp_text(const OrderStamp& s) {
  return fmt::format("[{}/{}/{}]", s.epoch.value(), s.session & 0xffffffff, s.seq);
}

std::string refs_text(const std::vector<JobRef>& refs) {
  std::string out;
  for (const JobRef& ref : refs) {
    out += fmt::format(" {}", ref.job.value());
    if (!ref.tasks.empty()) out += "_[" + format_index_ranges(ref.tasks) + "]";
  }
  return out;
}

std::string keys_text(const std::vector<AttemptKey>& keys) {
  std::string out;
  for (const AttemptKey& key : keys) out += " " + key_text(key);
  return out;
}

std::string one(const NodeAccept& m) {
  return fmt::format("accept {} kill{} forget{}", stamp_text(m.stamp), keys_text(m.kill),
                     keys_text(m.forget));
}
std::string one(const RegisterAgain& m) {
  return fmt::format("register again, epoch {}", m.epoch.value());
}
std::string one(const HeartbeatAck& m) {
  return "heartbeat ack " + stamp_text(m.stamp);
}
std::string one(const Launch& m) {
  return fmt::format("launch {} {}{}", key_text(m.key), stamp_text(m.stamp), m.hold ? " held" : "");
}
std::string one(const Go& m) {
  return fmt::format("go {} {}", key_text(m.key), stamp_text(m.stamp));
}
std::string one(const Terminate& m) {
  return fmt::format("terminate {} {} grace {}", key_text(m.key), stamp_text(m.stamp), m.grace.us);
}
std::string one(const SignalAttempt& m) {
  return fmt::format("signal {} {} {}", key_text(m.key), stamp_text(m.stamp), m.signal);
}
std::string one(const TellAttempt& m) {
  return fmt::format("tell {} {} \"{}\"", key_text(m.key), stamp_text(m.stamp), m.text);
}
std::string one(const ResumeGpu& m) {
  return fmt::format("resume GPU {} {}", m.uuid, stamp_text(m.stamp));
}
std::string one(const Freeze& m) {
  return fmt::format("{} {}", m.frozen ? "freeze" : "thaw", key_text(m.key));
}
std::string one(const AckExit& m) {
  return fmt::format("ack exit {} {}", key_text(m.key), stamp_text(m.stamp));
}
std::string one(const ProbeAttempt& m) {
  return "probe " + key_text(m.key);
}
std::string one(const AttemptProbed&) {
  return "probed";
}
std::string one(const IdentityTokens& m) {
  return "tokens " + key_text(m.key);
}
std::string one(const RenewIdentity& m) {
  return "renew tokens " + key_text(m.key);
}
std::string one(const FetchLog&) {
  return "fetch log";
}

std::string one(const NodeRegister& m) {
  std::string out = fmt::format("register {} epoch {}", m.boot_id, m.highest_epoch.value());
  for (const AttemptStatus& s : m.attempts)
    out += fmt::format(" {}:{}", key_text(s.key), enum_name(s.phase));
  return out;
}
std::string one(const Heartbeat& m) {
  return fmt::format("heartbeat {}", m.session & 0xffffffff);
}
std::string one(const LaunchReady& m) {
  return "ready " + key_text(m.key);
}
std::string one(const Started& m) {
  return "started " + key_text(m.key);
}
std::string one(const Frozen& m) {
  return fmt::format("{} {}", m.frozen ? "frozen" : "thawed", key_text(m.key));
}
std::string one(const ExitReport& m) {
  return fmt::format("exit {} {} {}:{} \"{}\"", key_text(m.key), enum_name(m.cause), m.exit.code,
                     m.exit.signal, m.message);
}
std::string one(const Goodbye& m) {
  return fmt::format("goodbye {}", m.session & 0xffffffff);
}
std::string one(const GpuReport& m) {
  return fmt::format("gpus {}", m.gpus.gpus.size());
}
std::string one(const FetchLogReply&) {
  return "log";
}

std::string one(const SubmitJob& m) {
  return "submit " + m.request_id;
}
std::string one(const CancelJobs& m) {
  return fmt::format("cancel{}{}{}{}", refs_text(m.filter.jobs), m.all_mine ? " mine" : "",
                     m.filter.names.empty() ? "" : " by name",
                     m.signal ? fmt::format(" signal {}", *m.signal) : "");
}
std::string one(const HoldJobs& m) {
  return "hold" + refs_text(m.jobs);
}
std::string one(const ReleaseJobs& m) {
  return "release" + refs_text(m.jobs);
}
std::string one(const RequeueJobs& m) {
  return "requeue" + refs_text(m.jobs);
}
std::string one(const UpdateJob& m) {
  return "update" + refs_text({m.job});
}
std::string one(const TopJobs& m) {
  return "top" + refs_text(m.jobs);
}
std::string one(const WaitJobs& m) {
  return "wait" + refs_text(m.jobs);
}
std::string one(const UpdateNodes& m) {
  return fmt::format("{} {}", enum_name(m.action), m.nodes.empty() ? "" : m.nodes.front());
}
std::string one(const UpdatePartition& m) {
  return fmt::format("partition {} {}", m.name, m.up ? "up" : "down");
}
std::string one(const EndAllocation& m) {
  return fmt::format("end allocation {}", m.job.value());
}
std::string one(const StepCreate& m) {
  return fmt::format("step of {}", m.job.value());
}
std::string one(const StepDone& m) {
  return "step done of " + key_text(m.key);
}

std::string one(const ApplyTenancy& m) {
  std::string out = m.dry_run ? "try documents" : "apply documents";
  for (const tenancy::Document& d : m.documents) out += " " + tenancy::name_of(d);
  for (const DocumentRef& r : m.removals) out += " without " + r.name;
  return out;
}
std::string one(const TenancyPlanned& m) {
  return fmt::format("{} at revision {}", m.applied ? "applied" : "planned", m.revision);
}

std::string one(const Ok&) {
  return "ok";
}
std::string one(const ErrorReply& m) {
  return fmt::format("refused: {}", m.message);
}
std::string one(const SubmitReply& m) {
  return fmt::format("job {}", m.job.value());
}
std::string one(const JobsDone& m) {
  return fmt::format("changed {}, not active{}, refused {}", m.changed, refs_text(m.not_active),
                     m.refused.size());
}
std::string one(const WaitReply& m) {
  return fmt::format("waited for {}", m.rows.size());
}
std::string one(const ListJobsReply& m) {
  return fmt::format("{} rows", m.rows.size());
}
template <class Other>
std::string one(const Other&) {
  return "other";
}

template <class Message>
std::string any(const Message& v) {
  return proto::visit([](const auto& m) { return one(m); }, v);
}

}  // namespace

std::string text_of(const core::OrderMessage& order) {
  return any(order);
}
std::string text_of(const core::NodeMessage& report) {
  return any(report);
}
std::string text_of(const core::ClientMessage& request) {
  return any(request);
}
std::string text_of(const core::ReplyMessage& reply) {
  return any(reply);
}
std::string text_of(const node::Order& order) {
  return std::visit([](const auto& m) { return one(m); }, order);
}
std::string text_of(const node::Report& report) {
  return std::visit([](const auto& m) { return one(m); }, report);
}

node::Order order_of(const core::OrderMessage& order) {
  return proto::visit(
      []<class T>(const T& m) -> node::Order {
        if constexpr (std::is_constructible_v<node::Order, T>)
          return m;
        else
          assertion_failed("an order", __FILE__, __LINE__, "the core gives no such order");
      },
      order);
}
core::NodeMessage message_of(const node::Report& report) {
  return std::visit([](const auto& m) { return core::NodeMessage(m); }, report);
}

}  // namespace gantry::sim
