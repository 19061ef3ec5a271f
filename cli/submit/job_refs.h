// Lists of jobs as people write them: "12,13_4,14_[1-3,9]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/option.h"
#include "common/job/job_spec.h"
#include "common/proto/job_ref.h"
#include "common/result.h"
#include "common/text/hostlist.h"

namespace gantry::cli {

// Reads a list of jobs and adds them to `out`. Commas within brackets belong to the id. Error:
// "Invalid job id abc".
Result<void> add_job_refs(std::vector<proto::JobRef>& out, std::string_view text);
// The jobs of all these lists.
Result<std::vector<proto::JobRef>> job_refs_of(const std::vector<std::string>& texts);

// Setters of options that say which jobs are meant; gqueue, gacct and gcancel share them. R is the
// command's own struct; its filter() returns the proto::JobFilter to fill.

// --account, --name, --partition, --state, --user: commas separate the words, and a repeated option
// adds words.
template <class R, std::vector<std::string> proto::JobFilter::*Member>
Result<void> add_words(R& request, std::string_view text) {
  for (std::string& word : split_list(text)) (request.filter().*Member).push_back(std::move(word));
  return {};
}

// --nodelist
template <class R>
Result<void> add_nodes(R& request, std::string_view text) {
  ASSIGN(names, expand_hostlist(text));
  auto& nodes = request.filter().nodes;
  nodes.insert(nodes.end(), names->begin(), names->end());
  return {};
}

// The value of --dependency.

struct DependencyList {
  std::vector<Dependency> list;
  bool any = false;  // separated by "?": one dependency that is met is enough
};

// Reads TYPE:JOB[_TASK][+MINUTES][:JOB...] or singleton; several are separated by "," or "?" (not
// both). A list of ids alone means afterany. Only `after` may have a delay.
Result<DependencyList> parse_dependency(std::string_view text);

}  // namespace gantry::cli
