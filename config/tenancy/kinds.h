// The YAML of the native kinds, declared once: each key with the member that it sets. Reading
// (read.h), writing and comparing (write.h), and the reference in docs/tenancy.md use these tables.
//
// A key with a point is in a section: "limits.time" is `time` below `limits`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/tenancy/tenancy_cluster.h"

namespace gantry::tenancy {

// The meaning of a text, if the member's type alone does not say it.
enum class Form : std::uint8_t {
  plain,
  word,        // a name of Gantry's form
  words,       // names
  weight,      // thousandths, written as a decimal
  bytes,       // an amount of memory
  rate,        // bytes or bits per second
  hosts,       // a host list
  gpu_model,   // lower case
  charge,      // charge for Resources: per core, GiB, GPU
  date,        // local: 2026-12-01 or 2026-12-01T06:00
  sum,         // an amount of money that is no price
  meters,      // prices by name of what is metered
  ranges,      // of addresses and ports: common/text/network_range.h
  peers,       // tenants, each with or without ports: "fraud tcp/8080"
  models,      // names of GPU models, in lower case
  registries,  // registries of images, or parts of them: "ghcr.io/group"
  patterns,    // patterns by field of a job: common/policy/pattern.h
};

struct MemberType;  // member_types.h: how members of one type are read and written

// Members of type T; member_types.cc lists the types.
template <class T>
const MemberType& type_of_member();

struct Field {
  template <class T>
  Field(std::string_view its_key, T* its_member, Form its_form, std::string_view its_doc)
      : key(its_key),
        member(its_member),
        type(&type_of_member<T>()),
        form(its_form),
        doc(its_doc) {}

  std::string_view key;
  void* member;
  const MemberType* type;
  Form form;
  std::string_view doc;
};

std::vector<Field> fields_of(Tenant& tenant);
std::vector<Field> fields_of(Cohort& cohort);
std::vector<Field> fields_of(Tier& tier);
std::vector<Field> fields_of(PriorityClass& priority_class);
std::vector<Field> fields_of(Flavor& flavor);
std::vector<Field> fields_of(NodePool& pool);
std::vector<Field> fields_of(Topology& topology);
std::vector<Field> fields_of(PriceBook& book);
std::vector<Field> fields_of(Budget& budget);
std::vector<Field> fields_of(Manifest& manifest);
std::vector<Field> fields_of(OtherCluster& cluster);
std::vector<Field> fields_of(LicenseResource& license);
std::vector<Field> fields_of(NetworkProfile& profile);
std::vector<Field> fields_of(NetworkService& service);
std::vector<Field> fields_of(CustomRole& role);  // kinds_rules.cc, as the next
std::vector<Field> fields_of(Policy& policy);
std::vector<Field> fields_of(Dataset& dataset);
std::vector<Field> fields_of(Service& service);  // kinds_services.cc, as the next
std::vector<Field> fields_of(ServiceVersion& version);
std::vector<Field> fields_of(ServiceShape& shape);
std::vector<Field> fields_of(ScaleHours& hours);
std::vector<Field> fields_of(Document& document);

// An empty document of that kind; nullopt if there is no such kind.
std::optional<Document> empty_document(std::string_view kind);
std::vector<std::string_view> kind_names();

std::string type_of(const Field& field);  // "name", "amounts", ...: for the reference and errors

}  // namespace gantry::tenancy
