print("searching")
