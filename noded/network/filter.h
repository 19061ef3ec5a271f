// Changes the packet filter of one network namespace by libnftables. A text of several commands is
// one transaction: all of it holds afterwards, or nothing of it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/result.h"

struct nft_ctx;

namespace gantry::network {

class Filter {
 public:
  // The filter of the namespace in which the thread is now.
  static Result<Filter> open();

  // The error has the first line of what libnftables says.
  Result<void> run(const std::string& commands);
  // The packets that the counter of a link's element has counted; the set has interfaces' names.
  Result<std::uint64_t> packets_of(const std::string& table, const std::string& set,
                                   const std::string& link);
  // The packets of everything that is named and counted in what a command lists: counters, or
  // elements of a set of names.
  Result<std::map<std::string, std::uint64_t>> counters(const std::string& command);
  // The table as JSON, with its counters and the elements of its sets.
  Result<std::string> list(const std::string& table);

 private:
  struct CloseContext {
    void operator()(nft_ctx* context) const;
  };
  explicit Filter(nft_ctx* context) : context_(context) {}
  std::unique_ptr<nft_ctx, CloseContext> context_;
};

}  // namespace gantry::network
