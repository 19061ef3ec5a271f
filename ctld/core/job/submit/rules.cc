#include "ctld/core/job/submit/rules.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/codec/codec.h"
#include "common/policy/judge.h"
#include "common/text/printable.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

bool among(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Puts a value that a policy fills in where the request has it.
void fill_in(JobSpec& spec, const std::string& field, const std::string& value) {
  if (field.starts_with(policy::kLabelFact)) {
    spec.labels.insert_or_assign(field.substr(policy::kLabelFact.size()), value);
  } else if (field == "comment") {
    spec.comment = value;
  } else if (field == "wckey") {
    spec.wckey = value;
  } else if (field == "network_profile") {
    spec.network_profile = value;
  } else if (field == "sandbox") {
    for (const auto& [level, name] : enum_names(Sandbox{}))
      if (name == value) spec.sandbox = level;
  } else if (field == "type") {
    for (const auto& [type, name] : enum_names(WorkType{}))
      if (name == value) spec.work_type = type;
  }
}

std::vector<const tenancy::Policy*> policies_for(const State& state, std::string_view tenant) {
  std::vector<const tenancy::Policy*> all;
  for (const tenancy::Policy& policy : state.tenancy.compiled.policies) all.push_back(&policy);
  return policy::in_order(all, tenant);
}

}  // namespace

Result<void> check_host_network(const State& state, const Partition& partition) {
  if (partition.declared->allow_host_network) return {};
  const Partition* whole = state.partition_named(partition.name);
  const bool tenant = state.tenancy.queues.contains(partition.name) ||
                      (whole != &partition && whole->declared->allow_host_network);
  return fail(ErrorCode::permission_denied,
              tenant
                  ? fmt::format("tenant {} may not use the host's network "
                                "(limits.host_network of its document)",
                                partition.payer())
                  : fmt::format("partition {} does not allow the host's network", partition.name));
}

Result<void> check_sharing(const State& state, const Partition& partition, const JobShape& shape) {
  const CompiledTenant* tenant = tenant_of(state, partition);
  if (tenant == nullptr || shape.sharing == NodeSharing::any || shape.exclusive ||
      partition.declared->exclusive_nodes || tenant->effective.jobs.keep_others_off.value_or(false))
    return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("tenant {} may not keep other jobs off nodes with --exclusive={} "
                          "(limits.keep_others_off of its document): ask for whole nodes with "
                          "--exclusive, or for a part of a node without it",
                          tenant->effective.name, enum_name(shape.sharing)));
}

Result<void> check_labels(const std::map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("the job has {} labels; at most {} are allowed", labels.size(), kMaxLabels));
  for (const auto& [key, value] : labels) {
    if (!policy::is_label_key(key))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{:.80}\" is no key of a label; use 1 to 63 letters, digits, '-', "
                              "'_', '.' and '/'",
                              key));
    if (value.size() > kMaxLabelBytes || !is_printable(value))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the value of label {} is not a printable text of up to {} bytes",
                              key, kMaxLabelBytes));
  }
  return {};
}

Result<void> allow_gpus(const State& state, const Identity& who, const Partition& partition,
                        JobShape& shape) {
  const CompiledTenant* tenant = tenant_of(state, partition);
  if (tenant == nullptr) return {};
  const bool wants =
      shape.gpus_per_node > 0 || shape.gpu_share > 0 || shape.gpu_shards > 0 || shape.all_gpus;
  if (!wants && !shape.exclusive) return {};
  const std::string& name = tenant->effective.name;
  const GpuRight right = gpu_right(state, who, name);
  if (right.any && right.models.empty()) return {};
  if (!right.any)
    return wants ? Result<void>(fail(ErrorCode::permission_denied,
                                     fmt::format("the role of {} in tenant {} allows no GPUs",
                                                 who.owner.user, name)))
                 : Result<void>();
  if (shape.gpu_models.empty()) {
    shape.gpu_models = right.models;
    return {};
  }
  for (const std::string& model : shape.gpu_models)
    if (!among(right.models, model))
      return fail(ErrorCode::permission_denied,
                  fmt::format("the role of {} in tenant {} does not allow GPUs of the model {}; it "
                              "allows {}",
                              who.owner.user, name, model, fmt::join(right.models, ", ")));
  return {};
}

Result<void> apply_label_rules(const State& state, const Partition& partition,
                               std::map<std::string, std::string>& labels) {
  const CompiledTenant* tenant = tenant_of(state, partition);
  if (tenant == nullptr) return {};
  for (const tenancy::LabelRule& rule : tenant->effective.label_rules) {
    const auto it = labels.find(rule.key);
    if (it == labels.end() && !rule.value.empty()) {
      labels.emplace(rule.key, rule.value);
      continue;
    }
    const std::string allowed =
        rule.values.empty() ? "any value" : fmt::format("one of {}", fmt::join(rule.values, ", "));
    if (it == labels.end() || it->second.empty())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("tenant {} wants the label {} on each job: give --labels {}=VALUE "
                              "with {}",
                              tenant->effective.name, rule.key, rule.key, allowed));
    if (!rule.values.empty() && !among(rule.values, it->second))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the label {} may not be \"{}\" in tenant {}; it has {}", rule.key,
                              it->second, tenant->effective.name, allowed));
  }
  return {};
}

Result<void> apply_rules(Context& ctx, const Identity& who, const Partition& partition,
                         std::optional<Duration> limit, JobSpec& spec,
                         std::vector<std::string>& warnings) {
  const CompiledTenant* tenant = tenant_of(ctx.state, partition);
  const std::string name = tenant == nullptr ? std::string() : tenant->effective.name;
  const auto policies = policies_for(ctx.state, name);
  if (!policies.empty()) {
    policy::Judgement found = policy::judge(
        policies,
        policy::facts_of(spec, {who.owner.user, name, partition.name, spec.priority_class, limit}));
    for (const policy::Finding& finding : found.audited)
      ctx.note(fmt::format("a job of {} ({}): {}", who.owner.user, spec.name, finding.text));
    if (found.denied_by != nullptr) return fail(ErrorCode::permission_denied, std::move(found.why));
    for (policy::Finding& finding : found.warnings) warnings.push_back(std::move(finding.text));
    for (const auto& [field, value] : found.values) fill_in(spec, field, value);
  }
  return apply_label_rules(ctx.state, partition, spec.labels);
}

namespace {

// The job before the change, and after it.
struct Versions {
  JobSpec before, after;
  policy::Standing was, is;
};

Versions versions_of(const State& state, const Job& job, const event::JobUpdated& change) {
  Versions v;
  const auto stored = codec::decode<StoredSpec>(spec_bytes(state, job));
  if (stored) v.before = stored->spec;
  const sched::ClassKey& key = class_of(state, job);
  v.before.name = state.names.text(job.name);
  v.before.account = state.names.text(job.account);
  v.before.shape = key.shape;
  v.before.reservation = key.reservation;
  if (job.comment) v.before.comment = *job.comment;
  const Partition& partition = state.partition(key.partition);
  const auto& classes = state.tenancy.class_names;
  v.was = {std::string(state.names.text(job.user)), tenant_name_of(state, partition),
           partition.name,
           key.priority_class < classes.size() ? classes[key.priority_class] : std::string(),
           time_limit_of(state, job)};
  v.after = v.before;
  v.is = v.was;
  const auto set = [](const auto& from, auto& to) {
    if (from) to = *from;
  };
  set(change.name, v.after.name);
  set(change.account, v.after.account);
  set(change.shape, v.after.shape);
  set(change.reservation, v.after.reservation);
  set(change.comment, v.after.comment);
  if (change.time_limit) v.is.time_limit = change.time_limit;
  if (change.partition) {
    const Partition& to = state.partition(*change.partition);
    v.is.partition = to.name;
    v.is.tenant = tenant_name_of(state, to);
  }
  return v;
}

}  // namespace

Result<void> rules_allow(const Context& ctx, const Identity& who, const Job& job,
                         const event::JobUpdated& change) {
  const bool seen = change.name || change.account || change.shape || change.reservation ||
                    change.comment || change.time_limit || change.partition;
  if (!seen) return {};
  Versions v = versions_of(ctx.state, job, change);
  const Partition& partition =
      ctx.state.partition(change.partition.value_or(class_of(ctx.state, job).partition));
  if (change.shape || v.is.tenant != v.was.tenant) {
    JobShape shape = v.after.shape;
    if (auto r = allow_gpus(ctx.state, who, partition, shape); !r) return r;
    if (shape.gpu_models != v.after.shape.gpu_models)  // named as a submit would have named them
      return fail(ErrorCode::permission_denied,
                  fmt::format("the role of {} in tenant {} allows GPUs of {} only, and the job may "
                              "get others: submit it there anew",
                              who.owner.user, v.is.tenant, fmt::join(shape.gpu_models, ", ")));
  }
  if (v.is.tenant != v.was.tenant)
    if (auto r = apply_label_rules(ctx.state, partition, v.after.labels); !r) return r;
  const auto denied = [&](const JobSpec& spec, const policy::Standing& standing) {
    return policy::judge(policies_for(ctx.state, standing.tenant),
                         policy::facts_of(spec, standing));
  };
  policy::Judgement now = denied(v.after, v.is);
  if (now.denied_by == nullptr || denied(v.before, v.was).denied_by == now.denied_by) return {};
  return fail(ErrorCode::permission_denied, std::move(now.why));
}

}  // namespace gantry::core
