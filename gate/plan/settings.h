// What the gate's part of gantry.yaml says, as the plan needs it.
#pragma once

#include <string>
#include <vector>

namespace gantry::gate {

struct Settings {
  std::vector<std::string> listen;      // HOST:PORT, plain
  std::vector<std::string> listen_tls;  // HOST:PORT, with the certificate
  std::string certificate;              // PEM file with certificates and key, or a directory
  std::string state_dir;
  std::string user;  // that HAProxy becomes; "" = it stays as it is
  unsigned threads = 1;
  unsigned connections = 10'000;
  std::string raw_metrics;  // HOST:PORT of HAProxy's own exporter; "" = none
};

}  // namespace gantry::gate
