// What each object of Kubernetes owns of the tenants, across applies.
//
// Every object that was applied is kept, as a document of kind Manifest. What all of them together
// come to is a function of the set, whatever their order and however they were split into files
// and applies. An apply replaces or adds objects in the set; what the set came to before and what
// it comes to now are compared, and only the difference, and what the objects of this apply say
// again, is changed in the documents. So a RoleBinding that is applied again takes back what it
// granted before, and nothing that another one, or a person, has granted.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/kubernetes.h"

namespace gantry::tenancy {

struct GivenObject {  // of this apply
  const config::Yaml* tree = nullptr;
  const std::string* file = nullptr;
  std::string path;  // in a List: "items[1]"
  [[nodiscard]] Value value() const { return {*tree, *file, path}; }
};

struct Merged {
  std::vector<ReadDocument> documents;  // Manifests too
  std::vector<proto::DocumentRef> removals;
  std::vector<Note> notes;  // of this apply's objects
};

// `known`: the documents that exist, with those of the same call that are ours. `forget`: what was
// applied before counts no more.
Result<Merged> merge_manifests(std::span<const GivenObject> given, std::span<const Document> known,
                               const std::string& user_domain, bool forget);

// "RoleBinding/fraud/admins"; "" = an object that means nothing here, and is not kept.
std::string manifest_name(const config::Yaml& tree);

// The text of a tree in one line: read again, it is the same tree.
std::string flow_text(const config::Yaml& tree);

// `now` with what differs between `before` and `after` put in: single values are replaced or taken
// out, lists lose what was in `before` alone and gain what is in `after`. With `again`, what is in
// `after` is put in even where it was in `before`.
config::Yaml merge_trees(const config::Yaml& now, const config::Yaml& before,
                         const config::Yaml& after, bool again);

}  // namespace gantry::tenancy
