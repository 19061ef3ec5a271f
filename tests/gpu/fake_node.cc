#include "tests/gpu/fake_node.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "noded/machine/files.h"

namespace gantry::gpu {

std::string FakeNode::library(const std::string& folder) {
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "";
  std::string build = self;
  for (int i = 0; i < 2; ++i) build.resize(build.rfind('/'));  // the program is <build>/tests/NAME
  return build + "/nvml/" + (folder.empty() ? "" : folder + "/") + "libnvidia-ml.so.1";
}

FakeNode::FakeNode(const std::string& gpus, const std::string& folder) : library_(library(folder)) {
  char name[] = "/tmp/gantry-gpu-XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  dir_ = name;
  std::ofstream(dir_ + "/fleet.json")
      << R"({"driver": "550.54.15", "cuda": 12040, "gpus": )" << gpus << "}";
  ::setenv("GANTRY_FAKE_NVML", (dir_ + "/fleet.json").c_str(), 1);
  auto mapping = fake::Mapping::open(dir_ + "/fleet.json.state", dir_ + "/fleet.json");
  INFO((mapping ? "" : mapping.error().message));
  REQUIRE(mapping);
  mapping_ = std::make_unique<fake::Mapping>(std::move(*mapping));
}

FakeNode::~FakeNode() {
  nvml_.reset();
  runtime::remove_tree(dir_);
}

std::string FakeNode::control(const std::string& line) {
  auto done = fake::control(state(), line);
  INFO(line, ": ", (done ? "" : done.error().message));
  REQUIRE(done);
  return *done;
}

Roots FakeNode::roots() {
  if (!has_tree_) control("tree " + dir_);
  has_tree_ = true;
  return {dir_ + "/dev", dir_ + "/proc", dir_ + "/sys"};
}

Nvml& FakeNode::open() {
  nvml_.reset();
  auto opened = Nvml::open(library_);
  INFO((opened ? "" : opened.error().message));
  REQUIRE(opened);
  nvml_ = std::move(*opened);
  return *nvml_;
}

}  // namespace gantry::gpu
