// Makes images for tests: a small root file system, and an OCI layout made from it.
#pragma once

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "tests/runtime/node_fixture.h"

namespace gantry::runtime::test {

inline bool shell(const std::string& command) {
  return std::system(("exec >/dev/null 2>&1; " + command).c_str()) == 0;
}

// Makes a small root file system: busybox and a file that marks the image.
inline std::string busybox_root(const Node& node) {
  const std::string root = node.dir() + "/rootfs";
  REQUIRE(shell("set -e; mkdir -p " + root + "/bin " + root + "/etc; cp /bin/busybox " + root +
                "/bin/; for a in sh cat ls echo touch pwd id env mount; do ln -s busybox " + root +
                "/bin/$a; done; echo from-image > " + root + "/etc/marker; chmod -R a+rX " + root));
  return root;
}

// Makes the layout node.dir()/oci with the tag `t` from this root, with an environment and a
// working directory.
inline bool oci_layout(const Node& node, const std::string& root) {
  const std::string image = node.dir() + "/oci";
  return shell(
      "set -e; umoci init --layout " + image + "; umoci new --image " + image +
      ":t; umoci unpack --image " + image + ":t " + node.dir() + "/bundle; cp -a " + root + "/. " +
      node.dir() + "/bundle/rootfs/; mkdir " + node.dir() +
      "/bundle/rootfs/srv2; umoci repack --image " + image + ":t " + node.dir() +
      "/bundle; umoci config --image " + image +
      ":t --config.env PATH=/bin --config.env WHO=image --config.workingdir /srv2; chmod -R a+rX " +
      image);
}

}  // namespace gantry::runtime::test
