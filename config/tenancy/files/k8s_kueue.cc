// Kueue's queues, cohorts, flavors and topologies, as in v1beta1 and v1beta2 (and the Cohort and
// Topology of v1alpha1).
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "config/tenancy/amounts.h"
#include "config/tenancy/files/k8s_objects.h"
#include "config/tenancy/read_parts.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

constexpr std::array<std::string_view, 3> kReclaim{"Never", "LowerPriority", "Any"};
constexpr std::string_view kStopQueue = "`gctl update partition NAME state=down` stops a queue";
using Words = std::span<const std::string_view>;

// Reads one of `choices`. A choice that is not in `alike` gets a note, because Gantry does not
// support it; choices in `alike` match Gantry's fixed behaviour.
Keys::Handler choice(const Meta& meta, Translation& into, Words choices, Words alike,
                     std::string_view why) {
  return [&meta, &into, choices, alike, why](const Value& v) -> Result<void> {
    std::string text;
    if (auto done = expect_choice(v, choices, text); !done) return done;
    if (std::find(alike.begin(), alike.end(), text) == alike.end())
      into.note(meta, v, std::string(why));
    return {};
  };
}

Keys::Handler stop_policy(const Meta& meta, Translation& into) {
  static constexpr std::array<std::string_view, 3> kStop{"None", "Hold", "HoldAndDrain"};
  return choice(meta, into, kStop, Words(kStop).first(1), kStopQueue);
}

// Reads a list of maps with these keys, and adds one note for the whole list.
Keys::Handler list_of(const Meta& meta, Translation& into, Words keys, std::string_view why) {
  return [&meta, &into, keys, why](const Value& v) -> Result<void> {
    ASSIGN(items, v.items());
    for (const Value& item : *items) {
      Keys known(item, into, meta);
      for (const std::string_view key : keys) known.note(key, "");
      if (auto done = known.run(); !done) return done;
    }
    if (!items->empty()) into.note(meta, v, std::string(why));
    return {};
  };
}

// Reads one resource of one flavor: "spec.resourceGroups[0].flavors[0].resources[0]".
Result<void> read_line(const Value& item, const std::string& flavor, const Meta& meta,
                       Translation& into, Pool& pool, std::string& name) {
  QuotaLine line;
  line.flavor = flavor;
  std::optional<Value> nominal;
  std::optional<Value> borrow;
  std::optional<Value> lend;
  const auto keep = [](std::optional<Value>& slot) {
    return [&slot](const Value& value) -> Result<void> {
      slot = value;
      return {};
    };
  };
  auto done = Keys(item, into, meta)
                  .text("name", name)
                  .required("nominalQuota", keep(nominal))
                  .on("borrowingLimit", keep(borrow))
                  .on("lendingLimit", keep(lend))
                  .run();
  if (!done) return done;
  if (name.empty()) return item.wrong("`name` is missing");
  const auto resource = resource_of_kubernetes(name);
  if (!resource) {
    ASSIGN(text, nominal->text());
    const auto number = parse_quantity(*text);
    if (!number) return nominal->wrong(number.error());
    if (name == "pods") {
      pool.pods = pool.pods.value_or(0) + static_cast<std::uint32_t>(std::min<std::int64_t>(
                                              times_in(*number).value(), 1'000'000));
      if (borrow || lend) into.note(meta, item, "numbers of jobs are neither borrowed nor lent");
    } else {
      into.note(meta, item, fmt::format("Gantry has no resource `{}`", name));
    }
    return {};
  }
  line.resource = *resource;
  ASSIGN(amount, read_quantity(*nominal, *resource));
  line.nominal = *amount;
  for (auto& [value, member] : {std::pair(&borrow, &line.borrow), {&lend, &line.lend}}) {
    if (!*value) continue;
    ASSIGN(limit, read_quantity(**value, *resource));
    *member = *limit;
  }
  for (const std::optional<Value>& limit : {borrow, lend})
    if (limit && !pool.first_limit) pool.first_limit = *limit;
  // A cohort may lend more than its own nominal quota, because its members' quota is lent through
  // it too.
  if (meta.kind != "Cohort" && line.lend && *line.lend > line.nominal)
    return lend->wrong("is more than nominalQuota, and only what is owned can be lent");
  const std::string_view key =
      line.resource == Resource::memory ? "memory" : enum_name(line.resource);
  pool.places[fmt::format("quota.flavors.{}.{}", flavor, key)] = item.place();
  pool.quota.push_back(std::move(line));
  return {};
}

Result<void> read_group(const Value& group, const Meta& meta, Translation& into, Pool& pool) {
  std::vector<std::string> covered;
  const auto read_flavor_quotas = [&](const Value& item) -> Result<void> {
    std::string flavor;
    std::vector<std::string> named;
    const auto resources = [&](const Value& value) -> Result<void> {
      ASSIGN(lines, value.items());
      for (const Value& line : *lines) {
        std::string& name = named.emplace_back();
        if (auto done = read_line(line, flavor, meta, into, pool, name); !done) return done;
        if (!covered.empty() && std::find(covered.begin(), covered.end(), name) == covered.end())
          return line.wrong(fmt::format("`{}` is none of coveredResources", name));
      }
      return {};
    };
    std::optional<Value> list;
    auto done = Keys(item, into, meta)
                    .text("name", flavor)
                    .required("resources",
                              [&](const Value& value) -> Result<void> {
                                list = value;
                                return {};
                              })
                    .run();
    if (!done) return done;
    if (!config::is_word(flavor)) return item.wrong("`name` is missing, or " + not_a_name(flavor));
    pool.places["quota.flavors." + flavor] = item.place();
    if (auto read = resources(*list); !read) return read;
    for (const std::string& resource : covered)
      if (std::find(named.begin(), named.end(), resource) == named.end())
        return item.wrong(
            fmt::format("has no quota for `{}`, which is one of coveredResources", resource));
    return {};
  };
  std::optional<Value> flavors;
  auto done = Keys(group, into, meta)
                  .required("coveredResources",
                            [&](const Value& value) -> Result<void> {
                              ASSIGN(names, value.texts());
                              covered = std::move(*names);
                              return {};
                            })
                  .required("flavors",
                            [&](const Value& value) -> Result<void> {
                              flavors = value;
                              return {};
                            })
                  .run();
  if (!done) return done;
  ASSIGN(items, flavors->items());
  for (const Value& item : *items)
    if (auto read = read_flavor_quotas(item); !read) return read;
  return {};
}

Keys::Handler groups_into(const Meta& meta, Translation& into, Pool& pool) {
  return [&](const Value& value) -> Result<void> {
    ASSIGN(groups, value.items());
    for (const Value& group : *groups)
      if (auto done = read_group(group, meta, into, pool); !done) return done;
    return {};
  };
}

Keys::Handler weight_into(const Meta& meta, Translation& into, Pool& pool) {
  return [&](const Value& value) {
    return Keys(value, into, meta)
        .on("weight",
            [&](const Value& v) -> Result<void> {
              ASSIGN(text, v.text());
              const auto weight = parse_quantity(*text);
              if (!weight) return v.wrong(weight.error());
              if (*weight > kMostWeight) return v.wrong("is above 1000000");
              pool.weight = weight->narrow<std::uint32_t>().value();
              return {};
            })
        .run();
  };
}

Result<void> read_preemption(const Value& value, const Meta& meta, Translation& into,
                             ClusterQueueParts& queue) {
  return Keys(value, into, meta)
      .on("reclaimWithinCohort",
          [&](const Value& v) -> Result<void> {
            std::string text;
            if (auto done = expect_choice(v, kReclaim, text); !done) return done;
            queue.reclaim = text == "Any"             ? Reclaim::any
                            : text == "LowerPriority" ? Reclaim::lower
                                                      : Reclaim::never;
            return {};
          })
      .on("withinClusterQueue",
          [&](const Value& v) -> Result<void> {
            static constexpr std::array<std::string_view, 3> kWithin{"Never", "LowerPriority",
                                                                     "LowerOrNewerEqualPriority"};
            std::string text;
            if (auto done = expect_choice(v, kWithin, text); !done) return done;
            if (text != "Never")
              into.note(meta, v,
                        "whether a job takes from lower ones is up to its PriorityClass "
                        "(`preempts`), in every queue alike");
            return {};
          })
      .on("borrowWithinCohort",
          [&](const Value& v) {
            static constexpr std::array<std::string_view, 2> kPolicies{"Never", "LowerPriority"};
            return Keys(v, into, meta)
                .on("policy", choice(meta, into, kPolicies, Words(kPolicies).first(1),
                                     "jobs that borrow take nothing from others; only an owner's "
                                     "reclaim and classes that preempt do"))
                .note("maxPriorityThreshold", "")
                .run();
          })
      .run();
}

Result<void> read_selector(const Value& value, const Meta& meta, Translation& into,
                           ClusterQueueParts& queue) {
  queue.selector.emplace();
  return Keys(value, into, meta)
      .on("matchLabels", [&](const Value& v) { return read_labels(v, *queue.selector); })
      .on("matchExpressions",
          [&](const Value& v) {
            static constexpr std::array<std::string_view, 3> kKeys{"key", "operator", "values"};
            return list_of(
                meta, into, kKeys,
                "is not looked at: every namespace whose LocalQueue names this queue may use it")(
                v);
          })
      .run();
}

// The feature that a node label stands for: for "gpu-a100: true" the last part of the key,
// otherwise the value.
std::string feature_of(const std::string& key, const std::string& value) {
  const std::string word =
      value == "true" || value.empty() ? key.substr(key.rfind('/') + 1) : value;
  return config::is_word(word) ? word : "";
}

// The model in a product name: "a100" for "NVIDIA-A100-SXM4-80GB", "t4" for "nvidia-tesla-t4"; ""
// if no part looks like a model.
std::string model_of(std::string product) {
  for (char& c : product) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (std::size_t at = 0; at < product.size();) {
    const std::size_t end = std::min(product.find_first_of("-_ ", at), product.size());
    const std::string part = product.substr(at, end - at);
    at = end + 1;
    const bool letter_then_digit = part.size() >= 2 && part[0] >= 'a' && part[0] <= 'z' &&
                                   part.find_first_of("0123456789") != std::string::npos;
    if (letter_then_digit && config::is_word(part) && !part.starts_with("sxm") &&
        !part.starts_with("hbm"))
      return part;
  }
  return "";
}

Result<void> read_node_labels(const Value& value, const Meta& meta, Translation& into,
                              Flavor& flavor) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    ASSIGN(text, entry.value.is_null() ? Result<std::string>("") : entry.value.text());
    const bool is_product =
        entry.key == "nvidia.com/gpu.product" || entry.key == "cloud.google.com/gke-accelerator";
    if (const std::string model = is_product ? model_of(*text) : ""; !model.empty()) {
      if (text->find("MIG") != std::string::npos)
        into.note(meta, entry.value,
                  "a flavor is of whole GPUs: slices count as their part of one, and jobs ask for "
                  "them (--gres=mig:PROFILE:N)");
      flavor.gpu_model = model;
      continue;
    }
    const std::string feature = feature_of(entry.key, *text);
    if (feature.empty()) {
      into.note(meta, entry.value, "is not a name that a node's feature could have");
      continue;
    }
    into.note(meta, entry.value,
              fmt::format("nodes of this flavor are those with the feature `{}` in gantry.yaml",
                          feature));
    flavor.features.push_back(feature);
  }
  std::sort(flavor.features.begin(), flavor.features.end());
  return {};
}

template <class T>
ReadDocument& keep(T document, const Meta& meta, Translation& into) {
  ReadDocument& read = into.documents.emplace_back();
  read.document = std::move(document);
  read.place = meta.place;
  read.translated = true;
  return read;
}

}  // namespace

namespace {

Result<void> read_fungibility(const Value& value, const Meta& meta, Translation& into) {
  // The words of v1beta1 and of v1beta2.
  static constexpr std::array<std::string_view, 3> kBorrow{"TryNextFlavor", "Borrow",
                                                           "MayStopSearch"};
  static constexpr std::array<std::string_view, 3> kPreempt{"TryNextFlavor", "Preempt",
                                                            "MayStopSearch"};
  static constexpr std::array<std::string_view, 2> kPrefer{"BorrowingOverPreemption",
                                                           "PreemptionOverBorrowing"};
  constexpr std::string_view kWhy =
      "flavors are tried in order, those in which a job does not borrow first, and nobody is "
      "preempted where one is free";
  return Keys(value, into, meta)
      .on("whenCanBorrow", choice(meta, into, kBorrow, Words(kBorrow).first(1), kWhy))
      .on("whenCanPreempt", choice(meta, into, kPreempt, Words(kPreempt).first(1), kWhy))
      .on("preference", choice(meta, into, kPrefer, Words(kPrefer).first(1), kWhy))
      .run();
}

// The API server has the same rule: borrowing and lending need a cohort.
Result<void> check_limits(const std::optional<Value>& limit, std::string_view with) {
  if (!limit) return {};
  return limit->wrong(fmt::format("needs `{}`: without it there is nobody to share with", with));
}

Result<void> read_queue_spec(const Value& value, const Meta& meta, Translation& into,
                             ClusterQueueParts& queue, bool& has_preemption) {
  static constexpr std::array<std::string_view, 2> kStrategies{"BestEffortFIFO", "StrictFIFO"};
  return Keys(value, into, meta)
      .text("cohort", queue.cohort)
      .text("cohortName", queue.cohort)
      .on("namespaceSelector", [&](const Value& v) { return read_selector(v, meta, into, queue); })
      .on("resourceGroups", groups_into(meta, into, queue))
      .on("fairSharing", weight_into(meta, into, queue))
      .on("preemption",
          [&](const Value& v) {
            has_preemption = true;
            return read_preemption(v, meta, into, queue);
          })
      .on("queueingStrategy", choice(meta, into, kStrategies, Words(kStrategies).first(1),
                                     "a job that fits may start before an older one that does not, "
                                     "as long as it does not delay it (backfill)"))
      .on("stopPolicy", stop_policy(meta, into))
      .on("flavorFungibility", [&](const Value& v) { return read_fungibility(v, meta, into); })
      .note("admissionChecks", "Gantry has no admission checks")
      .note("admissionChecksStrategy", "Gantry has no admission checks")
      .note("admissionScope", "usage is weighed by the fair share inside every tenant (gshare)")
      .note("concurrentAdmissionPolicy", "a job that runs is not moved to another flavor")
      .run();
}

}  // namespace

Result<void> read_cluster_queue(const Value& root, const Meta& meta, Translation& into) {
  if (into.queues.contains(meta.name)) return root.wrong("this ClusterQueue is there twice");
  ClusterQueueParts& queue = into.queues[meta.name];
  queue.place = meta.place;
  bool has_preemption = false;
  const auto spec = [&](const Value& value) {
    return read_queue_spec(value, meta, into, queue, has_preemption);
  };
  auto done = object_keys(root, into, meta).required("spec", spec).run();
  if (!done) return done;
  const auto limit = std::exchange(queue.first_limit, std::nullopt);
  if (queue.cohort.empty())
    if (auto good = check_limits(limit, "cohort"); !good) return good;
  if (!has_preemption && !queue.cohort.empty())
    into.notes.push_back(
        {meta.place, meta.shown(), "spec.preemption",
         "is not given, which in Kueue means that what it lends comes back only when the "
         "borrower's job ends; `reclaimWithinCohort: Any` takes it back"});
  return {};
}

Result<void> read_local_queue(const Value& root, const Meta& meta, Translation& into) {
  QueueRef queue;
  queue.name = meta.name;
  queue.place = meta.place;
  queue.object = meta.shown();
  const auto spec = [&](const Value& value) {
    return Keys(value, into, meta)
        .required("clusterQueue",
                  [&](const Value& v) -> Result<void> {
                    ASSIGN(text, v.text());
                    queue.cluster_queue = *text;
                    return {};
                  })
        .on("stopPolicy", stop_policy(meta, into))
        .note("fairSharing", "projects have shares inside a tenant; queues have none")
        .note("wallTimePolicy", "hours of running are not counted for a queue")
        .run();
  };
  if (auto done = object_keys(root, into, meta).required("spec", spec).run(); !done) return done;
  if (meta.name != meta.name_space)
    into.notes.push_back(
        {meta.place, meta.shown(), "metadata.name",
         fmt::format("jobs name the tenant's queue: `gbatch -p {}`", meta.name_space)});
  into.in_namespace(meta).queues.push_back(std::move(queue));
  return {};
}

Result<void> read_cohort(const Value& root, const Meta& meta, Translation& into) {
  Cohort cohort;
  cohort.name = meta.name;
  Pool pool;
  const auto spec = [&](const Value& value) {
    return Keys(value, into, meta)
        .text("parent", cohort.parent)
        .text("parentName", cohort.parent)
        .on("resourceGroups", groups_into(meta, into, pool))
        .on("fairSharing", weight_into(meta, into, pool))
        .run();
  };
  if (auto done = object_keys(root, into, meta).on("spec", spec).run(); !done) return done;
  if (cohort.parent.empty())
    if (auto good = check_limits(pool.first_limit, "parentName"); !good) return good;
  cohort.weight = pool.weight;
  cohort.quota = std::move(pool.quota);
  if (pool.pods)
    into.notes.push_back({meta.place, meta.shown(), "spec.resourceGroups",
                          "numbers of jobs are limited for each tenant, not for a cohort"});
  keep(std::move(cohort), meta, into).places = std::move(pool.places);
  return {};
}

Result<void> read_flavor(const Value& root, const Meta& meta, Translation& into) {
  static constexpr std::array<std::string_view, 4> kTaint{"key", "value", "effect", "timeAdded"};
  static constexpr std::array<std::string_view, 5> kToleration{"key", "operator", "value", "effect",
                                                               "tolerationSeconds"};
  Flavor flavor;
  flavor.name = meta.name;
  const auto spec = [&](const Value& value) {
    return Keys(value, into, meta)
        .on("nodeLabels", [&](const Value& v) { return read_node_labels(v, meta, into, flavor); })
        .on("nodeTaints", list_of(meta, into, kTaint,
                                  "taints are of a NodePool (`taints:`), and jobs tolerate them"))
        .on("tolerations", list_of(meta, into, kToleration, "jobs tolerate taints themselves"))
        .note("topologyName", "a cluster has one topology, and every flavor is in it")
        .note("resourceWeights", "what a flavor costs is the `charge` of a Flavor of gantry/v1")
        .run();
  };
  if (auto done = object_keys(root, into, meta).on("spec", spec).run(); !done) return done;
  keep(std::move(flavor), meta, into);
  return {};
}

Result<void> read_topology(const Value& root, const Meta& meta, Translation& into) {
  Topology topology;
  topology.name = meta.name;
  const auto levels = [&](const Value& value) -> Result<void> {
    ASSIGN(items, value.items());
    for (const Value& item : *items) {
      std::string label;
      if (auto done = Keys(item, into, meta).text("nodeLabel", label).run(); !done) return done;
      // The node itself is always the narrowest level.
      if (label == "kubernetes.io/hostname") continue;
      const std::string name = label.substr(label.rfind('/') + 1);
      if (!config::is_word(name)) return item.wrong("`nodeLabel` is missing or has no name in it");
      topology.levels.push_back(name);
    }
    return {};
  };
  const auto spec = [&](const Value& value) {
    return Keys(value, into, meta).required("levels", levels).run();
  };
  if (auto done = object_keys(root, into, meta).required("spec", spec).run(); !done) return done;
  into.notes.push_back({meta.place, meta.shown(), "spec.levels",
                        "which nodes are in which domain is not in this object: give `domains:` in "
                        "a Topology of gantry/v1; those that are known already are kept"});
  keep(std::move(topology), meta, into);
  return {};
}

}  // namespace gantry::tenancy
