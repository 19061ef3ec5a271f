// Roles, labels and policies of a scenario; see world.h.
//
//   > tenant fraud user=alice custom=trial:bob,ann until=bob:+2h
//   > tenant fraud labels_wanted=team:vision/nlp:nlp,code     KEY[:VALUES[:DEFAULT]]
//   > role trial base=user without=read-output gpus=no gpu_models=t4
//   > policy big tenant=fraud action=deny mode=audit order=5 match=gpus:>8;labels.team:x
//         unless=user:carol set=comment:y message="ask first"
//   > access alice [fraud]             who may do what, as gtenant access shows it
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/text/split.h"
#include "world.h"

namespace gantry::core::test {
namespace {

// "gpus:>8;labels.team:x"
std::map<std::string, std::string> pairs(const std::string& text) {
  std::map<std::string, std::string> out;
  for (const std::string& one : split(text, ';'))
    out[one.substr(0, one.find(':'))] = one.substr(one.find(':') + 1);
  return out;
}

template <class E>
void choose(const Words& w, const char* key, E& out) {
  if (const std::string* text = w.find(key))
    for (const auto& [value, name] : enum_names(E{}))
      if (name == *text) out = value;
}

tenancy::CustomRole role_of(const Words& w) {
  tenancy::CustomRole r;
  r.name = w.plain.at(1);
  if (w.find("base")) r.base = *w.find("base");
  if (w.find("without")) r.without = split(*w.find("without"), ',');
  if (w.find("gpus")) r.gpus = *w.find("gpus") == "yes";
  if (w.find("gpu_models")) r.gpu_models = split(*w.find("gpu_models"), ',');
  return r;
}

tenancy::Policy policy_of(const Words& w) {
  tenancy::Policy p;
  p.name = w.plain.at(1);
  if (w.find("tenant")) p.tenant = *w.find("tenant");
  if (w.find("order")) p.order = std::stoi(*w.find("order"));
  choose(w, "mode", p.mode);
  choose(w, "action", p.action);
  if (w.find("match")) p.match = pairs(*w.find("match"));
  if (w.find("unless")) p.unless = pairs(*w.find("unless"));
  if (w.find("set")) p.values = pairs(*w.find("set"));
  if (w.find("message")) p.message = *w.find("message");
  return p;
}

tenancy::Dataset dataset_of(const Words& w) {
  tenancy::Dataset d;
  d.name = w.plain.at(1);
  for (const auto& [key, to] : {std::pair("tenant", &d.tenant), {"path", &d.path}})
    if (const std::string* text = w.find(key)) *to = *text;
  for (const auto& [key, to] : {std::pair("read", &d.read), {"write", &d.write}})
    if (const std::string* text = w.find(key)) *to = split(*text, ',');
  return d;
}

}  // namespace

void World::add_rules(const Words& w, tenancy::Tenant& t) const {
  if (const std::string* text = w.find("custom"))
    for (const std::string& user : split(text->substr(text->find(':') + 1), ','))
      t.grants.push_back(
          {tenancy::Role::viewer, user, {}, std::nullopt, text->substr(0, text->find(':'))});
  if (const std::string* text = w.find("grouped"))  // grouped=tenant-admin:staff
    for (const auto& [role, name] : enum_names(tenancy::Role{}))
      if (name == text->substr(0, text->find(':')))
        t.grants.push_back({role, {}, text->substr(text->find(':') + 1)});
  if (const std::string* text = w.find("until"))
    for (const std::string& one : split(*text, ','))
      for (tenancy::Grant& grant : t.grants)
        if (grant.user == one.substr(0, one.find(':')))
          grant.until = time_of(one.substr(one.find(':') + 1));
  if (const std::string* text = w.find("storage")) t.storage.path = *text;
  if (const std::string* text = w.find("objects"))  // the tenant's prefix in one bucket
    t.storage.objects = {"http://s3", "", "lake", *text, "keys"};
  if (const std::string* text = w.find("labels_wanted"))
    for (const std::string& one : split(*text, ',')) {
      const auto parts = split(one, ':');
      tenancy::LabelRule& rule = t.label_rules.emplace_back();
      rule.key = parts.at(0);
      if (parts.size() > 1 && !parts[1].empty()) rule.values = split(parts[1], '/');
      if (parts.size() > 2) rule.value = parts[2];
    }
}

void World::add_labels(const Words& w, JobSpec& spec) {
  if (const std::string* text = w.find("labels"))
    for (auto& [key, value] : pairs(*text)) spec.labels[key] = value;
  if (const std::string* text = w.find("type"))
    for (const auto& [value, name] : enum_names(WorkType{}))
      if (name == *text) spec.work_type = value;
  if (const std::string* text = w.find("gpus_in_all")) spec.shape.gpus_in_all = std::stoul(*text);
  if (const std::string* text = w.find("gpus_per_task"))
    spec.shape.gpus_per_task = std::stoul(*text);
  if (const std::string* text = w.find("mem_per_gpu"))
    spec.shape.memory_per_gpu = *parse_memory(*text);
  if (const std::string* text = w.find("gpu_model")) spec.shape.gpu_models = split(*text, ',');
}

void World::add_datasets(const Words& w, JobSpec& spec) {
  if (const std::string* text = w.find("stage_in"))  // KEY:PATH
    spec.stage_in.push_back({text->substr(0, text->find(':')), text->substr(text->find(':') + 1)});
  if (const std::string* text = w.find("dataset"))  // NAME[:rw],...
    for (const std::string& one : split(*text, ','))
      spec.datasets.push_back({one.substr(0, one.find(':')), one.find(":rw") != std::string::npos});
}

bool World::rules_command(const std::string& verb, const Words& w) {
  if (verb == "role") return pending_.documents.emplace_back(role_of(w)), true;
  if (verb == "policy") return pending_.documents.emplace_back(policy_of(w)), true;
  if (verb == "dataset") return pending_.documents.emplace_back(dataset_of(w)), true;
  if (verb != "access") return false;
  proto::ListAccess m;
  if (w.plain.size() > 2) m.tenants = {w.plain.at(2)};
  ask(w.plain.at(1), std::move(m));
  return true;
}

void World::print(const proto::AccessReply& m) {
  for (const proto::AccessRow& row : m.rows)
    line(fmt::format(
        "{}: {} is {} by {}{}{}{}{}", row.tenant.empty() ? "cluster" : row.tenant,
        row.user.empty() ? "group " + row.group : row.user, row.role, row.from,
        row.until ? " until " + time_text(*row.until) : "",
        row.since ? fmt::format(", since {} by {}", time_text(*row.since), row.by) : "",
        row.gpus ? "" : ", no GPUs",
        row.gpu_models.empty() ? "" : fmt::format(", GPUs {}", fmt::join(row.gpu_models, "/"))));
}

}  // namespace gantry::core::test
