"""One rank of pmi2_test.py: speaks PMI-1 or PMI-2 over PMI_FD, as an MPI library does.

usage: pmi_client.py 1|2 [abort|bad|flood|gone|leave|split]
"""
import os
import signal
import socket
import sys

version, how = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
link = socket.socket(fileno=int(os.environ["PMI_FD"]))
node = os.environ["SLURMD_NODENAME"]
stream = link.makefile("rwb", buffering=0)
THREAD = "0x7f00%d" % rank


def line(text):
    stream.write(text.encode() + b"\n")
    answer = stream.readline().decode()
    assert answer.endswith("\n"), answer
    return dict(word.split("=", 1) for word in answer.split())


def frame(command, **values):
    body = f"cmd={command};thrid={THREAD};"
    body += "".join(f"{key}={value.replace(';', ';;')};" for key, value in values.items())
    stream.write(b"%6d%s" % (len(body), body.encode()))
    length = int(stream.read(6))
    answer = b""
    while len(answer) < length:
        answer += stream.read(length - len(answer))
    words = answer.decode().replace(";;", "\0").rstrip(";").split(";")
    pairs = dict(word.replace("\0", ";").split("=", 1) for word in words)
    assert pairs["cmd"] == command + "-response", pairs
    assert pairs["thrid"] == THREAD, pairs
    return pairs


def put(key, value):
    if version == 1:
        return line(f"cmd=put kvsname={space} key={key} value={value}")["rc"]
    return frame("kvs-put", key=key, value=value)["rc"]


def get(key):
    if version == 1:
        found = line(f"cmd=get kvsname={space} key={key}")
        return found["value"] if found["rc"] == "0" else None
    found = frame("kvs-get", jobid=space, srcid="-1", key=key)
    assert found["rc"] == "0", found
    return found["value"] if found["found"] == "TRUE" else None


def fence():
    if version == 1:
        assert line("cmd=barrier_in") == {"cmd": "barrier_out", "rc": "0"}
    else:
        assert frame("kvs-fence")["rc"] == "0"


minor = 1 if version == 1 else 0
said = line(f"cmd=init pmi_version={version} pmi_subversion={minor}")
assert said == {"cmd": "response_to_init", "rc": "0", "pmi_version": str(version),
                "pmi_subversion": str(minor)}, said
if version == 1:
    maxes = line("cmd=get_maxes")
    assert (maxes["keylen_max"], maxes["vallen_max"]) == ("64", "1024"), maxes
    assert line("cmd=get_universe_size")["size"] == str(size)
    assert "appnum" in line("cmd=get_appnum")
    space = line("cmd=get_my_kvsname")["kvsname"]
    mapping = get("PMI_process_mapping")
    assert line("cmd=publish_name service=s port=p")["info"] == "fail"
    stream.write(b"mcmd=spawn\nnprocs=1\nexecname=a b\ntotspawns=1\nspawnssofar=1\n")
    assert line("argcnt=0\nendcmd")["rc"] == "-1"
else:
    whole = frame("fullinit", pmijobid=os.environ["PMI_JOBID"], pmirank=str(rank),
                  threaded="FALSE")
    assert (whole["rank"], whole["size"], whole["rc"]) == (str(rank), str(size), "0"), whole
    space = frame("job-getid")["jobid"]
    mapping = frame("info-getjobattr", key="PMI_process_mapping")["value"]
    assert frame("info-getjobattr", key="universeSize")["value"] == str(size)
    assert frame("info-getjobattr", key="other")["found"] == "FALSE"
    assert frame("spawn", ncmds="1")["rc"] != "0"
    assert frame("name-publish", name="s", port="p")["rc"] != "0"
    if os.environ["SLURM_LOCALID"] == "0":
        assert frame("info-putnodeattr", key="here", value=node)["rc"] == "0"
    assert frame("info-getnodeattr", key="here", wait="TRUE")["value"] == node
    assert frame("info-getnodeattr", key="nowhere", wait="FALSE")["found"] == "FALSE"
assert space == os.environ["PMI_JOBID"] == "%s.%s" % (
    os.environ["SLURM_JOB_ID"], os.environ["SLURM_STEP_ID"]), space

if how and rank == 1:
    if how == "abort":
        if version == 1:
            stream.write(b"cmd=abort exitcode=5 message=it is enough\n")
        else:
            text = b"cmd=abort;isworld=TRUE;msg=it is enough;"
            stream.write(b"%6d%s" % (len(text), text))
        sys.exit(5)
    if how == "bad":
        stream.write(b"hello \1 world\n")
        assert stream.read(1) == b"", "it is hung up on"
        signal.pause()
    if how == "flood":
        stream.write(b"x" * 100000)
        signal.pause()
    if how == "gone":
        sys.exit(0)
    if how == "leave":
        sys.exit(6)
if how == "split":  # sends a command in pieces, and then two commands at once
    for piece in (b"cmd=put kvsname=", b"x key=split%d val" % rank, b"ue=1"):
        stream.write(piece)
    assert line("")["cmd"] == "put_result"
    stream.write(b"cmd=get_maxes\ncmd=get_appnum\n")
    assert stream.readline().startswith(b"cmd=maxes")
    assert stream.readline().startswith(b"cmd=appnum")

value = "a=%d%s" % (rank, ";" if version == 2 else "")
assert put("first%d" % rank, value) == "0"
assert put("k" * 65, "v") != "0"
assert put("long", "v" * 1025) != "0"
assert put("big%d" % rank, "v" * (900 + rank)) == "0"
assert get("first%d" % rank) is None, "not before the fence"
fence()
got = [get("first%d" % other) for other in range(size)]
assert [len(get("big%d" % other)) for other in range(size)] == [900 + r for r in range(size)]
assert put("second%d" % rank, str(10 * rank)) == "0"
fence()
total = sum(int(get("second%d" % other)) for other in range(size))
assert get("third") is None
fence()
if version == 1:
    pairs, index = {}, 0
    while (one := line(f"cmd=getbyidx kvsname={space} idx={index}"))["rc"] == "0":
        pairs[one["key"]], index = one["val"], int(one["nextidx"])
    assert pairs["second%d" % (size - 1)] == str(10 * (size - 1)), pairs
    assert line("cmd=finalize")["cmd"] == "finalize_ack"
else:
    assert frame("finalize")["rc"] == "0"
assert stream.read(1) == b"", "the server hangs up"
print(f"rank {rank} of {size} on {node} mapping {mapping} got {','.join(got)} total {total}",
      flush=True)
