// A node with the stand-in driver: a folder with fleet.json, the driver's state, and files as the
// kernel would show them. The library is the one of this build, loaded by its path as on a real
// node.
#pragma once

#include <memory>
#include <string>

#include "noded/gpu/nvml/discover.h"
#include "noded/gpu/nvml/nvml.h"
#include "tests/nvml/control.h"

namespace gantry::gpu {

class FakeNode {
 public:
  // `gpus` is the value of "gpus" in fleet.json.
  explicit FakeNode(const std::string& gpus, const std::string& library = "");
  ~FakeNode();
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  // Runs a command of gantry-fake-gpu; if the command fails, the test fails.
  std::string control(const std::string& line);
  [[nodiscard]] const std::string& dir() const { return dir_; }
  [[nodiscard]] Roots roots();  // folders for /proc, /sys and /dev, made at the first call
  // Opens the driver as the daemon does when it starts. After close() it can be opened again, as by
  // a restarted daemon.
  Nvml& open();
  void close() { nvml_.reset(); }
  Discovery look() { return discover(*nvml_, roots(), Instant{}); }
  fake::State& state() { return **mapping_; }

  static std::string library(const std::string& folder = "");  // "" or "old"

 private:
  std::string dir_;
  std::string library_;
  bool has_tree_ = false;
  std::unique_ptr<fake::Mapping> mapping_;
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace gantry::gpu
