#include "cli/tenancy/offboard_removal.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "common/overloaded.h"

namespace gantry::cli {
namespace {

using tenancy::Document;

// The price book without everything in it and in its plans that names the tenant.
tenancy::PriceBook without(tenancy::PriceBook left, const std::string& name) {
  left.tenant_zones.erase(name);
  for (tenancy::PricePlan& plan : left.plans) {
    std::erase(plan.tenants, name);
    std::erase_if(plan.projects, [&](const std::string& p) { return p.starts_with(name + "/"); });
  }
  // The plan was for this tenant alone.
  std::erase_if(left.plans, [](const tenancy::PricePlan& plan) {
    return plan.classes.empty() && plan.projects.empty() && plan.tenants.empty() &&
           plan.tiers.empty() && plan.sandboxes.empty();
  });
  return left;
}

tenancy::NetworkProfile without(tenancy::NetworkProfile left, const std::string& name) {
  for (auto* list : {&left.to_tenants, &left.from_tenants})  // "TENANT" or "TENANT tcp/8080"
    std::erase_if(*list,
                  [&](const std::string& one) { return one.substr(0, one.find(' ')) == name; });
  return left;
}

tenancy::Dataset without(tenancy::Dataset left, const std::string& name) {
  std::erase(left.read, name);
  std::erase(left.write, name);
  return left;
}

void add_profiles(const tenancy::Tenant& tenant, std::set<std::string>& names) {
  names.insert(tenant.network.default_profile);
  names.insert(tenant.network.profiles.begin(), tenant.network.profiles.end());
}

// A manifest is named KIND/NAMESPACE/NAME, and a namespace is a tenant.
bool is_of_namespace(const std::string& manifest, const std::string& name) {
  const std::size_t first = manifest.find('/'), second = manifest.find('/', first + 1);
  if (second == std::string::npos) return false;
  const std::string space = manifest.substr(first + 1, second - first - 1);
  return space == name || manifest == "Namespace//" + name;
}

}  // namespace

std::vector<Document> owned_by(const std::vector<Document>& documents, const std::string& name) {
  std::set<std::string> its, of_others;
  for (const Document& document : documents)
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document))
      add_profiles(*tenant, tenant->name == name ? its : of_others);
  std::vector<Document> out;
  for (const Document& document : documents) {
    const bool own = std::visit(
        Overloaded{[&](const tenancy::Tenant& t) { return t.name == name; },
                   [&](const tenancy::Budget& b) { return b.tenant == name; },
                   [&](const tenancy::Policy& p) { return p.tenant == name; },
                   [&](const tenancy::Dataset& d) { return d.tenant == name; },
                   [&](const tenancy::Service& d) { return d.tenant == name; },
                   [&](const tenancy::Manifest& m) { return is_of_namespace(m.name, name); },
                   [&](const tenancy::NetworkProfile& p) {
                     return its.contains(p.name) && !of_others.contains(p.name);
                   },
                   [](const auto&) { return false; }},
        document);
    if (own) out.push_back(document);
  }
  return out;
}

Change removal_of(const proto::TenancyDocuments& present, const std::string& name) {
  Change change;
  change.revision = present.revision;
  std::vector<Document> left = present.documents;
  for (const Document& document : owned_by(present.documents, name)) {
    change.removals.push_back(
        {std::string(tenancy::kind_of(document)), tenancy::name_of(document)});
    std::erase(left, document);
    if (const auto* dataset = std::get_if<tenancy::Dataset>(&document))
      change.notes.push_back(
          fmt::format("Dataset {} is granted to nobody any more; the files at {} stay",
                      dataset->name, dataset->path));
  }
  for (const Document& document : left) {
    const auto changed = [&](Document now, std::string_view what) {
      if (now == document) return;
      change.documents.push_back(std::move(now));
      change.notes.push_back(
          fmt::format("{} {} {}", tenancy::kind_of(document), tenancy::name_of(document), what));
    };
    constexpr std::string_view kSilent = "speaks of it no more";
    std::visit(
        Overloaded{[&](const tenancy::PriceBook& d) { changed(without(d, name), kSilent); },
                   [&](const tenancy::NetworkProfile& d) { changed(without(d, name), kSilent); },
                   [&](const tenancy::Dataset& d) { changed(without(d, name), kSilent); },
                   [&](const tenancy::Service& d) {
                     tenancy::Service left_of = d;
                     std::erase(left_of.route.callers, name);
                     changed(std::move(left_of), kSilent);
                   },
                   [&](const tenancy::NodePool& pool) {
                     tenancy::NodePool shared = pool;
                     if (shared.tenant == name) shared.tenant.clear();
                     changed(std::move(shared), "was its own, and is everybody's now");
                   },
                   [](const auto&) {}},
        document);
  }
  return change;
}

}  // namespace gantry::cli
