// The section `gate` of gantry.yaml: gantry-gate, through which clients reach services.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time/time.h"

namespace gantry {

struct GateConfig {
  std::string name;  // "" = the name of the host
  std::vector<std::string> listen{"127.0.0.1:8080"};
  std::vector<std::string> listen_tls;
  std::string certificate;  // PEM file, or a directory of such files; "" = none
  std::string address;  // how people name it: "https://services.example"; "" = the first of listen
  std::string state_dir = "/var/lib/gantry/gate";
  std::string haproxy = "/usr/sbin/haproxy";
  std::string user = "haproxy";   // user as which HAProxy runs if the gate is root; "" = root
  Duration stop_time = hours(1);  // time for open requests when the gate ends
  std::uint32_t threads = 1;
  std::uint32_t connections = 10'000;
};

}  // namespace gantry
