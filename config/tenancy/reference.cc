#include "config/tenancy/reference.h"

#include <fmt/core.h>

#include "config/tenancy/kinds.h"

namespace gantry::tenancy {
namespace {

constexpr std::string_view kHead =
    R"(# Kinds of tenancy documents

<!-- Made from config/tenancy/kinds.cc by its test; do not edit. -->

Each document has `apiVersion: gantry/v1`, a `kind`, a `name`, and the keys below; all but the name
may be left out. A file may hold several, parted by `---`. [tenancy.md](tenancy.md) explains them.

Amounts: `gpu` in whole devices, `cpu` in cores (`4`, `0.5`, `500m`), `memory` and `scratch` with
`Ki`, `Mi`, `Gi` or `Ti` (`G` is the same as `Gi`), `io` in bytes and `net` in bits per second
(`500M`, `2G`, in powers of 1,000). Quota of what nodes have may also be given as a part of the
cluster (`10%`), which becomes an amount when it is applied. A line of quota is an amount, or

```yaml
gpu: {nominal: 64, borrow: 128, lend: 32}   # owns 64, may hold 192, lends at most 32
cpu: {guaranteed: 200, burst: 400}          # the same as nominal: 200, borrow: 200
```

Without `borrow` the cohort is the only limit; without `lend` all that is idle is lent.
)";

std::string_view summary_of(std::string_view kind) {
  if (kind == Tenant::kName) return "A team: its queue, quota, projects and roles.";
  if (kind == Cohort::kName) return "Tenants and cohorts that lend to each other.";
  if (kind == Tier::kName) return "What its tenants have unless they say otherwise.";
  if (kind == PriorityClass::kName)
    return "Of jobs. `normal` (500, the default), `production-critical` (1000, preempts) and "
           "`best-effort` (100) exist without a document.";
  if (kind == Flavor::kName)
    return "A kind of node that quota speaks of. Of those that match a node, the one with the most "
           "conditions is its flavor.";
  if (kind == NodePool::kName) return "Nodes that are set apart.";
  if (kind == PriceBook::kName)
    return "What an hour costs, from a date on. A book of the present or the past may be changed, "
           "and counts from the change on: nothing that was charged is charged again.";
  if (kind == Budget::kName)
    return "Money for jobs of a tenant, a project or a user, in each period. [money.md](money.md) "
           "says how it counts.";
  if (kind == Manifest::kName)
    return "An object of Kubernetes or Kueue that was applied, as `gtenant apply` keeps it to know "
           "what it gave to whom. Not to be written by hand.";
  if (kind == LicenseResource::kName)
    return "Licences that several clusters share, as `sacctmgr add resource` has them. This "
           "cluster gives out its part; nothing counts those of others.";
  if (kind == OtherCluster::kName)
    return "Another cluster, for `sacctmgr list cluster`. Its jobs, and what its limits mean, are "
           "its own matter; this one is listed without a document.";
  if (kind == NetworkProfile::kName)
    return "What jobs may reach beside their own parts. `own` (nothing) and `basic` (the resolvers "
           "and the tenant's services, where the node has a way out) exist without a document. "
           "[network.md](network.md) explains them.";
  if (kind == NetworkService::kName)
    return "A name for addresses outside of the cluster's jobs: an object store, a registry.";
  if (kind == CustomRole::kName)
    return "A role of the site's own: a built-in role of tenants without some of its rights.";
  if (kind == Policy::kName)
    return "A rule about jobs when they are submitted or changed. [policies.md](policies.md) "
           "explains them.";
  if (kind == Dataset::kName)
    return "A directory of the site's storage that jobs ask for by name. [storage.md](storage.md) "
           "explains them.";
  if (kind == Service::kName)
    return "Replicas of a server behind the gates, and the response time that is promised of them. "
           "[services.md](services.md) explains them.";
  return "Where nodes stand.";
}

}  // namespace

std::string kinds_page() {
  std::string page(kHead);
  for (const std::string_view kind : kind_names()) {
    page += fmt::format("\n## {}\n\n{}\n\n| key | type | meaning |\n|---|---|---|\n", kind,
                        summary_of(kind));
    Document document = *empty_document(kind);
    for (const Field& field : fields_of(document))
      page += fmt::format("| `{}` | {} | {} |\n", field.key, type_of(field), field.doc);
  }
  return page;
}

}  // namespace gantry::tenancy
