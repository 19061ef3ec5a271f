// Files and folders of documents, ours and Kubernetes', to one set that is ready to apply.
//
// The first mistake ends it, with its place, and nothing comes of the rest. Folders are read whole
// (*.yaml, *.yml, *.json, folders below them too, in order of names; hidden ones are left out).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/kubernetes.h"
#include "config/tenancy/read.h"

namespace gantry::tenancy {

struct LoadOptions {
  std::span<const Document> known;                        // that exist
  const std::vector<proto::NodesAlike>* nodes = nullptr;  // unset: parts of the cluster are errors
  std::string user_domain;                                // see Kubernetes
  std::span<const proto::DocumentRef> removals;           // what will be gone
  bool only_these = false;                                // everything else will be gone
};

struct Loaded {
  std::vector<Document> documents;           // each once, sorted
  std::vector<proto::DocumentRef> removals;  // what objects that are applied again make no more
  std::vector<std::string> notes;            // what is not honoured, and what parts came to
};

// `paths`: files, folders, and "-" for `standard_input`.
Result<Loaded> load_documents(std::span<const std::string> paths, const LoadOptions& options,
                              const std::string& standard_input = {});

// One text; `file` is for errors.
Result<Loaded> load_text(const std::string& text, const std::string& file,
                         const LoadOptions& options);

// Documents that were made, not read; their places have a file ("command line") and no line.
Result<Loaded> load_made(std::vector<ReadDocument> made, const LoadOptions& options);

}  // namespace gantry::tenancy
