// Tests parts of noded/image that need no container: names, manifests, the store.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "noded/image/manifest.h"
#include "noded/image/store.h"
#include "tests/skip.h"

using namespace gantry;
using namespace gantry::runtime;

namespace {

const std::string kHex(64, 'a');
const std::string kOther(64, 'b');

std::string descriptor(const std::string& type, const std::string& hex, const char* more = "") {
  return R"({"mediaType":"application/vnd.)" + type + R"(","digest":"sha256:)" + hex +
         R"(","size":3)" + more + "}";
}

const std::string kConfig = descriptor("oci.image.config.v1+json", kHex);
const std::string kLayer = descriptor("oci.image.layer.v1.tar+gzip", kOther);

std::string manifest(const std::string& config, const std::string& layers,
                     const std::string& more = "") {
  return R"({"schemaVersion":2,"config":)" + config + R"(,"layers":[)" + layers + "]" + more + "}";
}

std::string why_not(const std::string& text) {
  const auto r = parse_manifest(text);
  return r ? "it was taken" : r.error().message;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("image names have few forms, none of which skopeo reads as something else") {
  const auto source = [](const std::string& text) {
    const auto r = parse_image(text, "/work");
    return r ? r->source : "refused";
  };
  CHECK(source("tool:7") == "docker://tool:7");
  CHECK(source("host:5000#team/tool@sha256:" + kHex) ==
        "docker://host:5000/team/tool@sha256:" + kHex);
  CHECK(source("oci:dir:t") == "oci:/work/dir:t");
  CHECK(source("docker-archive:/a b.tar") == "docker-archive:/a b.tar");
  CHECK(source("./x.sqsh") == "/work/./x.sqsh");
  for (const char* bad :
       {"docker://", "docker://-x", "-x", "a b", "docker-daemon:x", "containers-storage:[a@b]x",
        "dir:/etc", "tarball:/etc/x.tar", "docker://h/x\n", "oci:", "oci::t", "ostree:x@/y",
        "docker://h/$(x)", "sif:/x", "http://x", "h/x%2e", "x\x7f"}) {
    CAPTURE(bad);
    const auto r = parse_image(bad, "/work");
    // A name that does not begin with a known transport can only be a name in a registry.
    CHECK((!r || r->source.starts_with("docker://")));
  }
  for (const char* bad : {"docker://-x", "-x", "a b", "docker://h/x\n", "oci:", "oci::t"})
    CHECK(source(bad) == "refused");
  CHECK(is_on_loopback("docker://127.0.0.1:5000/x"));
  CHECK(is_on_loopback("docker://localhost/x"));
  CHECK(is_on_loopback("docker://[::1]:5000/x"));
  CHECK_FALSE(is_on_loopback("docker://localhost.example.com/x"));
  CHECK_FALSE(is_on_loopback("docker://127.0.0.1.example.com:5000/x"));
  CHECK_FALSE(is_on_loopback("docker://localhost"));
  CHECK_FALSE(is_on_loopback("docker://example.com/localhost"));
}

TEST_CASE("a manifest with repeated or unknown parts is refused") {
  const auto good = parse_manifest(manifest(kConfig, kLayer));
  REQUIRE(good.has_value());
  CHECK(good->config.digest == kHex);
  CHECK(good->layers.size() == 1);
  CHECK(good->size() == 6);
  CHECK(contains(why_not(manifest(kConfig, kLayer, R"(,"layers":[])")), "'layers' twice"));
  CHECK(
      contains(why_not(manifest(kConfig, kLayer, R"(,"annotations":{"a":1,"a":2})")), "'a' twice"));
  CHECK(contains(
      why_not(manifest(descriptor("oci.image.config.v1+json", kHex, R"(,"size":4)"), kLayer)),
      "'size' twice"));
  CHECK(contains(why_not(manifest(kConfig, "")), "no layers"));
  CHECK(contains(why_not(manifest(kConfig, kLayer, R"(,"manifests":[])")), "index"));
  CHECK(contains(why_not(manifest(kConfig, kConfig)), "media type"));
  CHECK(contains(why_not(manifest(kLayer, kLayer)), "media type"));
  CHECK(
      contains(why_not(manifest(kConfig, descriptor("oci.image.layer.v1.tar", "../../etc/shadow"))),
               "not a sha256 digest"));
  CHECK(contains(why_not(manifest(kConfig, kLayer, R"(,"mediaType":"x")")), "media type"));
  CHECK(contains(why_not("[]"), "not a JSON object"));
  CHECK(contains(why_not(std::string(100'000, '[')), "not a JSON object"));
  CHECK(contains(why_not(manifest(kConfig, kLayer) + "{}"), "not a JSON object"));
  CHECK(contains(why_not(R"({"schemaVersion":1})"), "schema version 2"));
  std::string many = kLayer;
  for (int i = 0; i < 600; ++i) many += "," + kLayer;
  CHECK(contains(why_not(manifest(kConfig, many)), "layers; at most"));
}

TEST_CASE("an index gives the one manifest of a platform, and nested indexes are refused") {
  const auto entry = [](const std::string& type, const std::string& hex, const char* arch) {
    const std::string platform =
        std::string(R"(,"platform":{"os":"linux","architecture":")") + arch + R"("})";
    return descriptor(type, hex, platform.c_str());
  };
  const std::string type = "oci.image.manifest.v1+json";
  const std::string text = R"({"schemaVersion":2,"manifests":[)" + entry(type, kHex, "arm64") +
                           "," + entry(type, kOther, "amd64") + "]}";
  CHECK(platform_manifest(text, "amd64").value() == kOther);
  CHECK(platform_manifest(text, "arm64").value() == kHex);
  CHECK_FALSE(platform_manifest(text, "s390x").has_value());
  CHECK(platform_manifest(manifest(kConfig, kLayer), "amd64").value().empty());
  CHECK_FALSE(
      platform_manifest(
          R"({"manifests":[)" + entry("oci.image.index.v1+json", kHex, "amd64") + "]}", "amd64")
          .has_value());
}

TEST_CASE("a layout's index gives one manifest for a tag, or for no tag if it has only one") {
  const auto entry = [](const std::string& hex, const char* tag) {
    const std::string notes =
        std::string(R"(,"annotations":{"org.opencontainers.image.ref.name":")") + tag + R"("})";
    return descriptor("oci.image.manifest.v1+json", hex, notes.c_str());
  };
  const auto index = [](const std::string& entries) {
    return R"({"schemaVersion":2,"manifests":[)" + entries + "]}";
  };
  const auto two = index(entry(kHex, "a") + "," + entry(kOther, "b"));
  CHECK(layout_manifest(two, "a").value() == kHex);
  CHECK(layout_manifest(two, "b").value() == kOther);
  CHECK_FALSE(layout_manifest(two, "").has_value());
  CHECK_FALSE(layout_manifest(two, "c").has_value());
  CHECK_FALSE(layout_manifest(index(entry(kHex, "a") + "," + entry(kOther, "a")), "a"));
  CHECK(layout_manifest(index(entry(kHex, "a")), "").value() == kHex);
  CHECK_FALSE(layout_manifest(index(""), "").has_value());
  CHECK_FALSE(layout_manifest(R"({"manifests":[7]})", "").has_value());
  CHECK_FALSE(layout_manifest(index(descriptor("oci.image.index.v1+json", kHex)), "").has_value());
}

TEST_CASE("an image's key depends on its content only, and ambiguous layouts are refused") {
  auto one = parse_manifest(manifest(kConfig, kLayer)).value();
  const auto key = key_of(one);
  CHECK(key ==
        key_of(parse_manifest(manifest(kConfig, kLayer, R"(,"annotations":{"a":"b"})")).value()));
  one.layers.push_back(one.layers[0]);
  CHECK(key != key_of(one));
  CHECK(key_of_squashfs(kHex) != key_of_squashfs(kOther));
  const auto meta = parse_image_config(
      R"({"rootfs":{"type":"layers","diff_ids":["sha256:)" + kHex +
          R"("]},"config":{"Env":["A=b",7],"WorkingDir":"/w","Labels":{"x":"y","X":"z"}}})",
      1);
  REQUIRE(meta.has_value());
  CHECK(meta->config.env == std::vector<std::string>{"A=b"});
  CHECK_FALSE(parse_image_config(R"({"rootfs":{"type":"layers","diff_ids":[]}})", 1).has_value());
  const auto files = minimal_layout({{{kOther, 3}, kHex, true}});
  REQUIRE(files.size() == 4);
  for (const auto& file : files) {
    const auto slash = file.path.rfind('/');
    if (slash != std::string::npos) CHECK(file.path.substr(slash + 1) == sha256_hex(file.text));
  }
  CHECK(parse_manifest(files[3].text).has_value());
  CHECK(contains(files[3].text, "sha256:" + kOther));
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("the store keeps only complete images, and gives them to users with a proof") {
  std::string dir = "/tmp/gantry-store-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  const Stopped never = [] { return std::string(); };
  const ImageStore store(dir, {1 << 20, 1 << 20, 10});
  REQUIRE(store.make().has_value());
  const auto put = [&](const std::string& key, int files) -> Result<void> {
    const auto slot = store.take_slot(never);
    REQUIRE(slot.has_value());
    REQUIRE(make_dirs(slot->dir + "/out/tree", 0700).has_value());
    for (int i = 0; i < files; ++i)
      std::ofstream(slot->dir + "/out/tree/" + std::to_string(i)) << std::string(1000, 'x');
    const auto alone = store.lock_key(key, never);
    REQUIRE(alone.has_value());
    return store.keep(*slot, key, {"source", {}, 0, 0, {}});
  };
  CHECK_FALSE(put(kOther, 11).has_value());  // the image has too many files
  CHECK(store.list().empty());
  REQUIRE(put(kHex, 3).has_value());
  CHECK_FALSE(store.find(kHex, Uid{1}).has_value());
  REQUIRE(store.prove(kHex, Uid{1}, "7.8").has_value());
  CHECK(store.find(kHex, Uid{1}).has_value());
  CHECK_FALSE(store.find(kHex, Uid{2}).has_value());
  CHECK(store.find_by_state("7.8", Uid{1}).has_value());
  CHECK_FALSE(store.find_by_state("7.8", Uid{2}).has_value());
  CHECK_FALSE(store.find_by_state("7.9", Uid{1}).has_value());
  // When the daemon starts it removes incomplete images, and files of an older release.
  for (const char* path : {"/images/"
                           "cccc",
                           "/slots/3/out/tree/x", "/gone/x/y", "/rootfs/z", "/users/1"})
    REQUIRE(make_dirs(dir + path, 0755).has_value());
  std::ofstream(dir + "/slots/3.lock") << "";
  REQUIRE(make_dirs(dir + "/images/" + kOther + "/tree", 0755).has_value());
  store.tidy_up();
  for (const std::string& path :
       {std::string("/slots/3"), std::string("/gone/x"), std::string("/rootfs"),
        std::string("/users"), "/images/" + kOther})
    CHECK_MESSAGE(::access((dir + path).c_str(), F_OK) != 0, path);
  {
    const auto held = store.find(kHex, Uid{1});
    REQUIRE(held.has_value());
    store.make_room(2 << 20);
    CHECK(store.list().size() == 1);
    CHECK(store.list()[0].in_use);
  }
  CHECK_FALSE(store.list()[0].in_use);
  store.make_room(2 << 20);
  CHECK(store.list().empty());
  remove_tree(dir);
}

TEST_CASE("a tree of any depth is removed") {
  std::string dir = "/tmp/gantry-deep-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  Fd at(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 1500; ++i) {
    REQUIRE(::mkdirat(at.get(), "d", 0755) == 0);
    at.reset(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  at.reset();
  remove_tree(dir);
  CHECK(::access(dir.c_str(), F_OK) != 0);
}

TEST_CASE("a user with an open directory can make nothing in it once its removal has begun") {
  if (::geteuid() != 0) SKIP_CASE("only root can be two users");
  std::string dir = "/tmp/gantry-taken-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  const std::string top = dir + "/top", inner = top + "/inner";
  REQUIRE(make_dirs(inner, 0777).has_value());
  REQUIRE(::chown(inner.c_str(), 20'001, 20'001) == 0);
  // The removal cannot enter or delete the mount, so this directory stays. A file that the user
  // makes again and again would have the same effect.
  REQUIRE(make_dirs(inner + "/mount", 0777).has_value());
  REQUIRE(::mount("tmpfs", (inner + "/mount").c_str(), "tmpfs", 0, nullptr) == 0);
  const Fd open(::open(inner.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  remove_tree(top);
  const pid_t user = ::fork();
  if (user == 0) {
    if (::setresuid(20'001, 20'001, 20'001) != 0) ::_exit(1);
    ::_exit(::openat(open.get(), "more", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES ? 0 : 2);
  }
  int status = -1;
  CHECK(::waitpid(user, &status, 0) == user);
  CHECK(status == 0);
  // The measurement does not enter another mount either.
  std::ofstream(inner + "/mount/large") << std::string(1 << 20, 'x');
  const StoreLimits limits{1 << 30, 1 << 30, 100};
  const Fd measured(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  CHECK(tree_size(measured.get(), limits).bytes < 1 << 20);
  CHECK(::umount((inner + "/mount").c_str()) == 0);
  remove_tree(dir);
  CHECK(::access(dir.c_str(), F_OK) != 0);
}
