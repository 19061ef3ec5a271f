// Setters of options that say which jobs are meant; gqueue, gacct and gcancel share them. R is the
// command's own struct; its filter() returns the proto::JobFilter to fill.
#pragma once

#include <string_view>

#include "cli/option.h"
#include "common/proto/job_ref.h"
#include "common/text/hostlist.h"

namespace gantry::cli {

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

}  // namespace gantry::cli
