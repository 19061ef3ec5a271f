// The keys of the kinds about people, rules and data: roles of the site's own, policies, datasets.
#include "config/tenancy/kinds.h"

namespace gantry::tenancy {

std::vector<Field> fields_of(CustomRole& r) {
  return {
      {"name", &r.name, Form::word, "Of the role, for `roles` of tenants and tiers."},
      {"description", &r.description, Form::plain, "For people."},
      {"base", &r.base, Form::plain,
       "The role whose rights it has: `viewer`, `user` or `tenant-admin`; user."},
      {"without", &r.without, Form::words,
       "Rights of the base that it does not give: `see`, `submit`, `change-jobs`, `read-output`, "
       "`edit-projects`, `edit-roles`, `edit-policies`, `edit-secrets`, `ask-increase`."},
      {"gpus", &r.gpus, Form::plain, "Whether its jobs may ask for GPUs; true."},
      {"gpu_models", &r.gpu_models, Form::models,
       "Models of GPUs that its jobs may ask for, and get if they name none; all unless given."}};
}

std::vector<Field> fields_of(Policy& p) {
  return {{"name", &p.name, Form::word, "Of the policy; its refusals and warnings name it."},
          {"description", &p.description, Form::plain, "For people."},
          {"tenant", &p.tenant, Form::word,
           "Whose jobs it is about; its admins may change it. All jobs unless given."},
          {"order", &p.order, Form::plain,
           "Policies with a lower number are asked first, then by name; 0."},
          {"mode", &p.mode, Form::plain,
           "`enforce`, or `audit`: it changes nothing, and the controller's log says what it would "
           "have done; enforce."},
          {"action", &p.action, Form::plain,
           "What becomes of jobs that match: `deny`, `warn`, `default` (they get what `set` says "
           "and they leave open) or `allow` (no later policy of the same owner is asked); deny."},
          {"match", &p.match, Form::patterns,
           "By field of a job, patterns that all have to match. [policies.md](policies.md) has the "
           "fields and the patterns. Everything matches unless given."},
          {"unless", &p.unless, Form::patterns,
           "By field, patterns: where all of them match, the policy does not hold."},
          {"set", &p.values, Form::patterns, "With `action: default`, values by field."},
          {"message", &p.message, Form::plain, "For the submitter: what to do instead."}};
}

std::vector<Field> fields_of(Dataset& d) {
  return {{"name", &d.name, Form::word, "Of the dataset, for `--dataset`."},
          {"description", &d.description, Form::plain, "For people."},
          {"tenant", &d.tenant, Form::word, "Whose it is: its jobs may read and write it."},
          {"path", &d.path, Form::plain,
           "Its directory on the nodes, below one of `noded.storage`; jobs see it at this path."},
          {"read", &d.read, Form::words, "Tenants whose jobs may read it; none unless given."},
          {"write", &d.write, Form::words,
           "Tenants whose jobs may read and write it; none unless given."}};
}

}  // namespace gantry::tenancy
