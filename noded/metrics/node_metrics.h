// Formats the figures of a node and its jobs as metrics (common/metrics/families.h). The figures
// are read elsewhere; this function is pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/node_report.h"
#include "common/resources/gpu.h"
#include "noded/neighbours/sample.h"
#include "noded/network/fabric.h"

namespace gantry::metrics {

struct JobOwner {
  std::string tenant, user;  // "" = no tenant
};

struct NodeFigures {
  std::string node;
  neighbours::Sample sample;
  std::map<proto::AttemptKey, JobOwner> owners;  // figures of running jobs
  std::optional<network::Fabric::Counts> network;
  std::vector<proto::GpuActivity> gpus;
  std::vector<GpuDevice> devices;
};

// `tenant`: only the jobs of this tenant, and nothing of the node; not set: everything.
std::string node_metrics(const NodeFigures& figures, const std::optional<std::string>& tenant);

}  // namespace gantry::metrics
