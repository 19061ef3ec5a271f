// Reads files and folders of documents, Gantry's and Kubernetes', into one set that is ready to
// apply.
//
// The first mistake ends it, with its place, and nothing is applied. A folder is read completely
// (*.yaml, *.yml, *.json, and the folders below it, in the order of names); hidden files are left
// out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/files/kubernetes.h"
#include "config/tenancy/read.h"

namespace gantry::tenancy {

struct LoadOptions {
  std::span<const Document> known;  // documents that exist
  // Not set: amounts that are parts of the cluster are errors.
  const std::vector<proto::NodesAlike>* nodes = nullptr;
  std::string user_domain;                       // see Kubernetes
  std::span<const proto::DocumentRef> removals;  // documents that will be removed
  bool only_these = false;                       // all other documents will be removed
};

struct Loaded {
  std::vector<Document> documents;  // each once, sorted
  // Documents that objects, applied again, no longer make.
  std::vector<proto::DocumentRef> removals;
  // Sentences about what Gantry does not do, and about the amounts of parts of the cluster.
  std::vector<std::string> notes;
};

// Reads `paths`: files, folders, and "-" for `standard_input`.
Result<Loaded> load_documents(std::span<const std::string> paths, const LoadOptions& options,
                              const std::string& standard_input = {});

// Reads one text; errors name it `file`.
Result<Loaded> load_text(const std::string& text, const std::string& file,
                         const LoadOptions& options);

// Takes documents that were made, not read. Their places have a file ("command line") and no line.
Result<Loaded> load_made(std::vector<ReadDocument> made, const LoadOptions& options);

}  // namespace gantry::tenancy
