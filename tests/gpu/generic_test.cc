// Tests generic resources: what a discovery command may print, and what is refused.
#include "noded/gpu/generic.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>

#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

std::string why_not(const std::string& json) {
  const auto parsed = parse_discovered(json, "/sbin/find-fpgas");
  return parsed ? "" : parsed.error().message;
}

TEST_CASE("the output of a discovery command is read") {
  const auto found = parse_discovered(
      R"({"resources": [
           {"name": "fpga", "type": "u250", "devices": [
              {"files": ["/dev/xfpga0", "/dev/xfpga-mgmt0"], "numa": 1, "env": {"SLOT": "0"}},
              {"id": "b", "files": ["/dev/fpga/[1-3]"]}]},
           {"name": "sim-license", "count": 4}]})",
      "/sbin/find-fpgas");
  INFO((found ? "" : found.error().message));
  REQUIRE(found);
  REQUIRE(found->size() == 2);
  const GenericResource& fpga = (*found)[0];
  CHECK(fpga.count == 2);
  CHECK(fpga.devices[0].id == "0");
  CHECK(fpga.devices[0].numa == 1);
  CHECK(fpga.devices[1].files ==
        std::vector<std::string>{"/dev/fpga/1", "/dev/fpga/2", "/dev/fpga/3"});
  CHECK((*found)[1].count == 4);
  CHECK(parse_discovered(R"({"resources": []})", "x")->empty());
}

TEST_CASE("malformed output of a discovery command is refused with the reason") {
  const auto one = [](const std::string& resource) {
    return why_not(R"({"resources": [)" + resource + "]}");
  };
  CHECK(why_not("fpga 2").starts_with("/sbin/find-fpgas printed: "));
  CHECK(one(R"({"name": "fpga", "cuont": 2})").find("cuont: no such field") != std::string::npos);
  CHECK(one(R"({"name": "FPGA", "count": 1})").find("is no name of a resource") !=
        std::string::npos);
  CHECK(one(R"({"name": "mig", "count": 1})").find("the name is taken") != std::string::npos);
  CHECK(one(R"({"name": "fpga"})").find("needs devices, or a count of 1 to") != std::string::npos);
  CHECK(one(R"({"name": "fpga", "count": 3, "devices": [{"files": ["/dev/a"]}]})")
            .find("a count of 3 and 1 devices") != std::string::npos);
  CHECK(one(R"({"name": "fpga", "devices": [{"files": ["/etc/passwd"]}]})")
            .find("fpga: device 0: \"/etc/passwd\" is no path in /dev") != std::string::npos);
  CHECK(one(R"({"name": "fpga", "devices": [{"files": ["/dev/../etc/passwd"]}]})")
            .find("is no path in /dev") != std::string::npos);
  CHECK(one(R"({"name": "fpga", "devices": [{"files": ["/dev/a"]}, {"files": ["/dev/a"]}]})")
            .find("two devices with /dev/a") != std::string::npos);
  CHECK(one(R"({"name": "fpga", "devices": [{"id": "x"}, {"id": "x"}]})")
            .find("two devices with the id x") != std::string::npos);
  CHECK(one(R"({"name": "fpga", "devices": [{"env": {"A B": "1"}}]})")
            .find("is no name of a variable") != std::string::npos);
  CHECK(one(R"({"name": "f", "count": 1}, {"name": "f", "count": 2})").find("f is given twice") !=
        std::string::npos);
}

TEST_CASE("declared and discovered resources are combined, but none twice") {
  GenericResource declared;
  declared.name = "fpga";
  declared.type = "u250";
  declared.count = 2;
  GenericResource discovered = declared;
  discovered.type = "u280";
  CHECK(combine({declared}, {discovered})->size() == 2);
  discovered.type = "u250";
  CHECK(combine({declared}, {discovered}).error().message == "fpga:u250 is given twice");
}

TEST_CASE("device numbers are read from the device files, and other files are refused") {
  GenericDevice device;
  device.files = {"/dev/null", "/dev/tty"};
  const auto files = device_files(device, Roots{});
  REQUIRE(files);
  CHECK(*files == std::vector<DeviceFile>{{"/dev/null", 1, 3, "rw"}, {"/dev/tty", 5, 0, "rw"}});
  device.files = {"/dev/none-of-this-name"};
  CHECK_FALSE(device_files(device, Roots{}));

  char name[] = "/tmp/gantry-generic-XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  std::ofstream(std::string(name) + "/plain") << "x";
  Roots roots;
  roots.dev = name;
  device.files = {"/dev/plain"};
  CHECK(device_files(device, roots).error().message.ends_with("/plain is no character device"));
  runtime::remove_tree(name);
}

}  // namespace
}  // namespace gantry::gpu
