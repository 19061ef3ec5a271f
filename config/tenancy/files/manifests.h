// Keeps track of what each object of Kubernetes owns in the tenants, from apply to apply.
//
// Every applied object is stored as a document of kind Manifest. The result of all of them together
// depends only on the set, not on their order or on how they were divided into files and applies.
// An apply replaces or adds objects in the set. The results of the set before and after are
// compared; only the difference, and the contents of the objects in this apply, change the
// documents. So a RoleBinding that is applied again removes what it granted before, but nothing
// that another object, or a person, has granted.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/files/kubernetes.h"

namespace gantry::tenancy {

struct GivenObject {  // an object of this apply
  const config::Yaml* tree = nullptr;
  const std::string* file = nullptr;
  std::string path;  // for an object in a List: "items[1]"
  [[nodiscard]] Value value() const { return {*tree, *file, path}; }
};

struct Merged {
  std::vector<ReadDocument> documents;  // Manifests too
  std::vector<proto::DocumentRef> removals;
  std::vector<Note> notes;  // about objects of this apply
};

// `known` are the documents that exist, and documents of the same call that are not Kubernetes'.
// `forget` means that objects applied earlier are ignored.
Result<Merged> merge_manifests(std::span<const GivenObject> given, std::span<const Document> known,
                               const std::string& user_domain, bool forget);

// The name of an object's Manifest: "RoleBinding/fraud/admins"; "" = the object has no meaning
// here, and is not stored.
std::string manifest_name(const config::Yaml& tree);

// The tree as a text in one line. Reading the text gives the same tree.
std::string flow_text(const config::Yaml& tree);

// Applies the difference between `before` and `after` to `now`: single values are replaced or
// removed, and lists lose what was only in `before` and gain what is only in `after`. With `again`,
// everything in `after` is put in, even if it was in `before`.
config::Yaml merge_trees(const config::Yaml& now, const config::Yaml& before,
                         const config::Yaml& after, bool again);

}  // namespace gantry::tenancy
